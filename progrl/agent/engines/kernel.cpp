// A decoder's layers over new tokens of several conversations, in float32 on one thread: norms,
// matrix products, attention over what a slot holds, the gate. Each token's numbers are the same
// whatever is computed beside it. The shape is fixed when this is compiled: HIDDEN, HEADS,
// KV_HEADS, HEAD_DIM, FFN; all widths are multiples of 16.
//
// Matrices lie in panels of 64 columns, [width out / 64][width in][64], the last one as narrow as
// it must be. A slot's keys and values lie as attention.h has them.

#include "attention.h"

enum {
  GROUP = HEADS / KV_HEADS,
  QUERIES = HEADS * HEAD_DIM,
  QKV = (HEADS + 2 * KV_HEADS) * HEAD_DIM,
  PANEL = 64,
  VECTORS = LANES == 8 ? 2 : 4,  // of a panel at once: as many as there are registers for
  BLOCK = 48,  // tokens whose products follow one another while they lie in a near cache
  ROWS = 6,    // tokens of a product at once
  TILE = 4,    // queries that attend at once
};

struct Layer {
  const float *norm_in, *qkv, *qkv_bias, *qk_norm, *out, *out_bias, *norm_mid, *gate_up, *down;
  float *keys, *values;
};

// New tokens of conversations: of each its slot, how much that holds, and how many are new.
struct Batch {
  int64_t conversations, tokens;
  const int64_t *slots, *starts, *counts;
  int64_t capacity;
  const float *cosine, *sine;  // [positions, HALF]
};

static inline void normalize(const float *x, const float *weight, float eps, float *to) {
  const float by = scale_of(x, HIDDEN, eps);
  for (int j = 0; j < HIDDEN; j += LANES) store(to + j, load(x + j) * by * load(weight + j));
}

// to [R rows, LANES * V columns] = from [R, depth] * panel [depth, columns] (+ bias) (+ to).
template <int R, int V>
static void product(int columns, int depth, const float *from, int64_t step, const float *panel,
                    const float *bias, bool add, float *to, int64_t width) {
  vec sums[R][V] = {};
  for (int k = 0; k < depth; k++, panel += columns) {
    vec row[V];
    for (int v = 0; v < V; v++) row[v] = load(panel + LANES * v);
    for (int r = 0; r < R; r++)
      for (int v = 0; v < V; v++) sums[r][v] += from[r * step + k] * row[v];
  }
  for (int r = 0; r < R; r++) {
    for (int v = 0; v < V; v++) {
      float *place = to + r * width + LANES * v;
      vec sum = sums[r][v];
      if (bias) sum += load(bias + LANES * v);
      if (add) sum += load(place);
      store(place, sum);
    }
  }
}

// The same with numbers of rows and vectors that are not known before.
template <int R = ROWS, int V = VECTORS>
static void some(int rows, int vectors, int columns, int depth, const float *from, int64_t step,
                 const float *panel, const float *bias, bool add, float *to, int64_t width) {
  if constexpr (R > 0 && V > 0) {
    if (rows < R)
      some<R - 1, V>(rows, vectors, columns, depth, from, step, panel, bias, add, to, width);
    else if (vectors < V)
      some<R, V - 1>(rows, vectors, columns, depth, from, step, panel, bias, add, to, width);
    else
      product<R, V>(columns, depth, from, step, panel, bias, add, to, width);
  }
}

// to [rows, width] = from [rows, depth] * matrix (+ bias), or added to it.
static void multiply(int64_t rows, int width, int depth, const float *from, const float *matrix,
                     const float *bias, bool add, float *to) {
  for (int column = 0; column < width; column += PANEL) {
    const int columns = width - column < PANEL ? width - column : PANEL;
    for (int part = 0; part < columns; part += LANES * VECTORS) {
      const float *panel = matrix + (int64_t)column * depth + part;
      const int vectors = (columns - part) / LANES < VECTORS ? (columns - part) / LANES : VECTORS;
      for (int64_t row = 0; row < rows; row += ROWS)
        some(rows - row < ROWS ? rows - row : ROWS, vectors, columns, depth, from + row * depth,
             depth, panel, bias ? bias + column + part : 0, add, to + row * width + column + part,
             width);
    }
  }
}

// A head's row: divided by its root mean square where it has a norm, and turned by its position.
static inline void turn(const float *from, const float *norm, float eps, const float *cosine,
                        const float *sine, float *to) {
  const float by = norm ? scale_of(from, HEAD_DIM, eps) : 1.0f;
  float row[HEAD_DIM];
  for (int j = 0; j < HEAD_DIM; j++) row[j] = norm ? from[j] * (by * norm[j]) : from[j];
  rotate(row, cosine, sine, to);
}

// A token's row of queries, keys and values: queries turned and scaled in place, the rest kept.
static void keep(const Layer &layer, const Batch &batch, int64_t slot, int64_t at, float eps,
                 float scale, float *row) {
  const float *c = batch.cosine + at * HALF, *s = batch.sine + at * HALF, *norms = layer.qk_norm;
  for (int head = 0; head < HEADS; head++) {
    float *query = row + head * HEAD_DIM;
    turn(query, norms ? norms + head * HEAD_DIM : 0, eps, c, s, query);
    for (int j = 0; j < HEAD_DIM; j++) query[j] *= scale;
  }
  for (int head = 0; head < KV_HEADS; head++) {
    const int64_t place = (slot * KV_HEADS + head) * batch.capacity * HEAD_DIM;
    const int key = HEADS + head;
    float turned[HEAD_DIM], *to = layer.keys + place + at / LANES * LANES * HEAD_DIM + at % LANES;
    turn(row + key * HEAD_DIM, norms ? norms + key * HEAD_DIM : 0, eps, c, s, turned);
    for (int j = 0; j < HEAD_DIM; j++) to[LANES * j] = turned[j];
    memcpy(layer.values + place + at * HEAD_DIM, row + (key + KV_HEADS) * HEAD_DIM,
           HEAD_DIM * sizeof(float));
  }
}

// Q queries of one conversation and one head of keys; `lengths` says how far each may look.
template <int Q>
static void attend(const float *const *queries, const int64_t *lengths, const float *keys,
                   const float *values, const float *next, float *scores, int64_t room,
                   float *const *out) {
  constexpr int B = Q > 2 ? 2 : 4;
  const int64_t end = (lengths[Q - 1] + 15) / 16 * 16;  // whole blocks, and mix's steps of 8
  int64_t t = 0;
  for (; t + LANES * B <= end; t += LANES * B)
    score<Q, B>(queries, keys + t * HEAD_DIM, values + t * HEAD_DIM, scores + t, room);
  for (; t < end; t += LANES)
    score<Q, 1>(queries, keys + t * HEAD_DIM, values + t * HEAD_DIM, scores + t, room);
  float by[Q];
  for (int q = 0; q < Q; q++) by[q] = weigh(scores + q * room, lengths[q], end);
  mix<Q>(scores, room, end, values, next, by, out);
}

// All queries of the new tokens from `first` on of a conversation that held `start`;
// `rows` are those tokens' [QKV] and `out` takes their [QUERIES].
static void attend_all(const Batch &batch, int64_t start, int64_t first, int64_t count,
                       const float *keys, const float *values, const float *next, int head,
                       const float *rows, float *scores, float *out) {
  const int64_t room = batch.capacity + 16, all = (count - first) * GROUP;
  for (int64_t begin = 0; begin < all; begin += TILE) {
    const float *queries[TILE];
    int64_t lengths[TILE];
    float *places[TILE];
    const int n = all - begin < TILE ? all - begin : TILE;
    for (int q = 0; q < n; q++) {
      const int64_t token = first + (begin + q) / GROUP;
      const int which = head * GROUP + (begin + q) % GROUP;
      queries[q] = rows + token * QKV + which * HEAD_DIM;
      places[q] = out + (token - first) * QUERIES + which * HEAD_DIM;
      lengths[q] = start + token + 1;
    }
    switch (n) {
      case 1: attend<1>(queries, lengths, keys, values, next, scores, room, places); break;
      case 2: attend<2>(queries, lengths, keys, values, next, scores, room, places); break;
      case 3: attend<3>(queries, lengths, keys, values, next, scores, room, places); break;
      default: attend<4>(queries, lengths, keys, values, next, scores, room, places);
    }
  }
}

// All layers. x [tokens, HIDDEN] are the tokens' embeddings, conversation after conversation; at
// the end its first rows are the states of each conversation's last token. `room` has space for
// tokens * (QKV + QUERIES) + BLOCK * (HIDDEN + 3 FFN) + TILE * (capacity + 16) numbers.
extern "C" void forward(int64_t count, const Layer *layers, const Batch *given, float eps,
                        float scale, float *x, float *room) {
  const Batch &batch = *given;
  float *qkv = room, *mixed = qkv + batch.tokens * QKV, *normed = mixed + batch.tokens * QUERIES;
  float *both = normed + BLOCK * HIDDEN, *gated = both + BLOCK * 2 * FFN;
  float *scores = gated + BLOCK * FFN;
  for (int64_t number = 0; number < count; number++) {
    const Layer &layer = layers[number];
    const bool last = number + 1 == count;  // whose only use is the last tokens' states
    for (int64_t row = 0; row < batch.tokens; row += BLOCK) {
      const int64_t rows = batch.tokens - row < BLOCK ? batch.tokens - row : BLOCK;
      for (int64_t r = 0; r < rows; r++)
        normalize(x + (row + r) * HIDDEN, layer.norm_in, eps, normed + r * HIDDEN);
      multiply(rows, QKV, HIDDEN, normed, layer.qkv, layer.qkv_bias, false, qkv + row * QKV);
    }
    int64_t token = 0, rows = 0;
    for (int64_t c = 0; c < batch.conversations; c++) {
      const int64_t slot = batch.slots[c], start = batch.starts[c], n = batch.counts[c];
      for (int64_t i = 0; i < n; i++)
        keep(layer, batch, slot, start + i, eps, scale, qkv + (token + i) * QKV);
      const int64_t first = last ? n - 1 : 0;
      for (int head = 0; head < KV_HEADS; head++) {
        const int64_t size = batch.capacity * HEAD_DIM, place = (slot * KV_HEADS + head) * size;
        const int64_t after = head + 1 < KV_HEADS ? place + size
                              : c + 1 < batch.conversations
                                  ? batch.slots[c + 1] * KV_HEADS * size
                                  : place;
        attend_all(batch, start, first, n, layer.keys + place, layer.values + place,
                   layer.keys + after, head, qkv + token * QKV, scores, mixed + rows * QUERIES);
      }
      if (last) memmove(x + rows * HIDDEN, x + (token + first) * HIDDEN, HIDDEN * sizeof(float));
      rows += n - first;
      token += n;
    }
    for (int64_t row = 0; row < rows; row += BLOCK) {
      const int64_t n = rows - row < BLOCK ? rows - row : BLOCK;
      float *states = x + row * HIDDEN;
      multiply(n, HIDDEN, QUERIES, mixed + row * QUERIES, layer.out, layer.out_bias, true, states);
      for (int64_t r = 0; r < n; r++)
        normalize(states + r * HIDDEN, layer.norm_mid, eps, normed + r * HIDDEN);
      multiply(n, 2 * FFN, HIDDEN, normed, layer.gate_up, 0, false, both);
      for (int64_t r = 0; r < n; r++) {
        for (int j = 0; j < FFN; j += LANES) {
          vec a = load(both + r * 2 * FFN + j);
          store(gated + r * FFN + j, a * sigmoid(a) * load(both + r * 2 * FFN + FFN + j));
        }
      }
      multiply(n, HIDDEN, FFN, gated, layer.down, 0, true, states);
    }
  }
}
