// What a decoder's layer is between its matrix products, forward and backward, in float32 on one
// thread: norms, rotations, attention, the gate. HEAD_DIM is fixed when this is compiled; all widths
// are multiples of 16. What is added to gradients of weights is added to what stands there.

#include "attention.h"

enum { TILE = 4, BLOCKS = 2 };  // queries, and blocks of keys, that attend at once

// to = x by weight, divided by its root mean square; `by` keeps 1 / that of each row.
extern "C" void norm(int64_t rows, int64_t width, const float *x, const float *weight, float eps,
                     float *to, float *by) {
  for (int64_t row = 0; row < rows; row++, x += width, to += width) {
    by[row] = scale_of(x, width, eps);
    for (int64_t j = 0; j < width; j += LANES) store(to + j, load(x + j) * by[row] * load(weight + j));
  }
}

static inline void norm_row_back(int64_t width, const float *x, const float *weight, float by,
                                 const float *given, float *x_gradient, float *weight_gradient) {
  vec along = {};
  for (int64_t j = 0; j < width; j += LANES) {
    vec a = load(given + j), b = load(x + j);
    along += a * load(weight + j) * b;
    store(weight_gradient + j, load(weight_gradient + j) + a * b * by);
  }
  const float less = total(along) * by * by * by / width;
  for (int64_t j = 0; j < width; j += LANES)
    store(x_gradient + j, load(given + j) * load(weight + j) * by - load(x + j) * less);
}

extern "C" void norm_back(int64_t rows, int64_t width, const float *x, const float *weight,
                          const float *by, const float *given, float *x_gradient,
                          float *weight_gradient) {
  for (int64_t row = 0; row < rows; row++, x += width, given += width, x_gradient += width)
    norm_row_back(width, x, weight, by[row], given, x_gradient, weight_gradient);
}

// Heads [rows, heads, HEAD_DIM]: normed, then turned by the row's angles [rows, HALF].
extern "C" void turn(int64_t rows, int64_t heads, const float *x, const float *weight, float eps,
                     const float *cosine, const float *sine, float *to, float *by) {
  for (int64_t row = 0; row < rows; row++, cosine += HALF, sine += HALF) {
    for (int64_t head = 0; head < heads; head++, x += HEAD_DIM, to += HEAD_DIM, by++) {
      float row_of[HEAD_DIM];
      norm(1, HEAD_DIM, x, weight, eps, row_of, by);
      rotate(row_of, cosine, sine, to);
    }
  }
}

extern "C" void turn_back(int64_t rows, int64_t heads, const float *x, const float *weight,
                          const float *by, const float *cosine, const float *sine,
                          const float *given, float *x_gradient, float *weight_gradient) {
  for (int64_t row = 0; row < rows; row++, cosine += HALF, sine += HALF) {
    for (int64_t head = 0; head < heads; head++) {
      float back[HEAD_DIM];
      for (int j = 0; j < HALF; j++) {
        back[j] = given[j] * cosine[j] + given[j + HALF] * sine[j];
        back[j + HALF] = given[j + HALF] * cosine[j] - given[j] * sine[j];
      }
      norm_row_back(HEAD_DIM, x, weight, *by, back, x_gradient, weight_gradient);
      x += HEAD_DIM, given += HEAD_DIM, x_gradient += HEAD_DIM, by++;
    }
  }
}

// to = silu(gate) * up, of `count` numbers each.
extern "C" void gate(int64_t count, const float *gates, const float *up, float *to) {
  for (int64_t j = 0; j < count; j += LANES) {
    vec a = load(gates + j);
    store(to + j, a * sigmoid(a) * load(up + j));
  }
}

extern "C" void gate_back(int64_t count, const float *gates, const float *up, const float *given,
                            float *gate_gradient, float *up_gradient) {
  for (int64_t j = 0; j < count; j += LANES) {
    vec a = load(gates + j), share = sigmoid(a), g = load(given + j);
    store(up_gradient + j, g * a * share);
    store(gate_gradient + j, g * load(up + j) * share * (1.0f + a * (1.0f - share)));
  }
}

// Rows of tokens, [batch, length], and which of them ask: row b's queries are those from ends[b - 1]
// to ends[b], and each sees the first `lengths` places of its row, of them only those that `visible`
// [batch, length, length] allows its own place (the last that it sees), where that is given.
struct Rows {
  int64_t batch, length, heads;
  const int64_t *ends, *lengths;
  const uint8_t *visible;
};

static inline int64_t whole(int64_t length) {
  return (length + 16 * BLOCKS - 1) / (16 * BLOCKS) * (16 * BLOCKS);
}

// A head's [length, HEAD_DIM] out of [length, heads, HEAD_DIM], and in blocks of LANES tokens.
static void gather(const float *from, int64_t length, int64_t step, float *rows, float *blocks) {
  const int64_t end = whole(length);
  for (int64_t t = 0; t < end; t++) {
    float *row = rows + t * HEAD_DIM, *block = blocks + t / LANES * LANES * HEAD_DIM + t % LANES;
    for (int j = 0; j < HEAD_DIM; j++) row[j] = t < length ? from[t * step + j] : 0.0f;
    for (int j = 0; j < HEAD_DIM; j++) block[LANES * j] = row[j];
  }
}

// A head's keys and values, as rows and as blocks, at the beginning of some room.
struct Held {
  float *k, *k_blocks, *v, *v_blocks, *rest;

  Held(float *room, int64_t size)
      : k(room), k_blocks(k + size), v(k_blocks + size), v_blocks(v + size), rest(v_blocks + size) {}

  void take(const Rows &given, const float *keys, const float *values) const {
    gather(keys, given.length, given.heads * HEAD_DIM, k, k_blocks);
    gather(values, given.length, given.heads * HEAD_DIM, v, v_blocks);
  }
};

// TILE rows of HEAD_DIM, times `by`; zeros where there are fewer.
struct Tile {
  float rows[TILE][HEAD_DIM];
  const float *places[TILE];

  Tile(const float *from, int64_t step, int count, float by) {
    for (int q = 0; q < TILE; q++) {
      for (int j = 0; j < HEAD_DIM; j++) rows[q][j] = q < count ? from[q * step + j] * by : 0.0f;
      places[q] = rows[q];
    }
  }
};

// [TILE, room] products of a tile's rows with the first `end` tokens of `blocks`.
static void scores_of(const Tile &tile, const float *blocks, int64_t end, float *scores,
                      int64_t room) {
  for (int64_t t = 0; t < end; t += LANES * BLOCKS)
    score<TILE, BLOCKS>(tile.places, blocks + t * HEAD_DIM, nullptr, scores + t, room);
}

// -inf for the places that a query may not look at.
static void hide(const Rows &given, int64_t b, int64_t length, float *scores) {
  if (!given.visible) return;
  const uint8_t *seen = given.visible + (b * given.length + length - 1) * given.length;
  for (int64_t t = 0; t < length; t++) scores[t] = seen[t] ? scores[t] : -INFINITY;
}

// queries [Q, heads, HEAD_DIM], keys and values [batch, length, heads, HEAD_DIM], out as queries;
// logs [Q, heads]: the logarithm of each softmax's denominator. `room` has space for
// (4 HEAD_DIM + TILE) * (length + 32) numbers.
extern "C" void attention(const Rows *rows, float scale, const float *queries, const float *keys,
                          const float *values, float *out, float *logs, float *room) {
  const Rows &given = *rows;
  const int64_t wide = whole(given.length), step = given.heads * HEAD_DIM, size = wide * HEAD_DIM;
  const Held held(room, size);
  float *scores = held.rest;
  for (int64_t b = 0; b < given.batch; b++) {
    const int64_t begin = b ? given.ends[b - 1] : 0;
    for (int64_t head = 0; head < given.heads; head++) {
      const int64_t place = b * given.length * step + head * HEAD_DIM;
      held.take(given, keys + place, values + place);
      for (int64_t at = begin; at < given.ends[b]; at += TILE) {
        const int count = given.ends[b] - at < TILE ? given.ends[b] - at : TILE;
        const int64_t end = whole(given.lengths[at + count - 1]);
        const Tile tile(queries + at * step + head * HEAD_DIM, step, count, scale);
        scores_of(tile, held.k_blocks, end, scores, wide);
        float by[TILE], spare[HEAD_DIM], *places[TILE];
        for (int q = 0; q < TILE; q++) {
          const bool real = q < count;
          const int64_t length = given.lengths[at + (real ? q : 0)];
          if (real) hide(given, b, length, scores + q * wide);
          by[q] = weigh(scores + q * wide, length, end,
                        real ? logs + (at + q) * given.heads + head : 0);
          places[q] = real ? out + (at + q) * step + head * HEAD_DIM : spare;
        }
        mix<TILE>(scores, wide, end, held.v, nullptr, by, places);
      }
    }
  }
}

// gradient [end][HEAD_DIM] += weights [TILE, room] transposed * rows [TILE][HEAD_DIM].
static void spread(const float *weights, int64_t room, int64_t end, const Tile &tile,
                   float *gradient) {
  for (int part = 0; part < HEAD_DIM; part += LANES) {
    vec rows[TILE];
    for (int q = 0; q < TILE; q++) rows[q] = load(tile.rows[q] + part);
    for (int64_t t = 0; t < end; t++) {
      float *place = gradient + t * HEAD_DIM + part;
      vec sum = load(place);
      for (int q = 0; q < TILE; q++) sum += weights[q * room + t] * rows[q];
      store(place, sum);
    }
  }
}

// The gradients of queries, keys and values, of those of `out`. `room` has space for
// (6 HEAD_DIM + 2 TILE) * (length + 32) numbers.
extern "C" void attention_back(const Rows *rows, float scale, const float *queries,
                               const float *keys, const float *values, const float *out,
                               const float *logs, const float *gradient, float *q_gradient,
                               float *k_gradient, float *v_gradient, float *room) {
  const Rows &given = *rows;
  const int64_t wide = whole(given.length), step = given.heads * HEAD_DIM, size = wide * HEAD_DIM;
  const Held held(room, size);
  float *k_sums = held.rest, *v_sums = k_sums + size;
  float *weights = v_sums + size, *slopes = weights + TILE * wide;
  for (int64_t b = 0; b < given.batch; b++) {
    const int64_t begin = b ? given.ends[b - 1] : 0;
    for (int64_t head = 0; head < given.heads; head++) {
      const int64_t place = b * given.length * step + head * HEAD_DIM;
      held.take(given, keys + place, values + place);
      memset(k_sums, 0, 2 * size * sizeof(float));
      for (int64_t at = begin; at < given.ends[b]; at += TILE) {
        const int count = given.ends[b] - at < TILE ? given.ends[b] - at : TILE;
        const int64_t end = whole(given.lengths[at + count - 1]);
        const int64_t first = at * step + head * HEAD_DIM;
        const Tile tile(queries + first, step, count, scale), back(gradient + first, step, count, 1);
        scores_of(tile, held.k_blocks, end, weights, wide);
        scores_of(back, held.v_blocks, end, slopes, wide);
        float by[TILE], spare[HEAD_DIM], *places[TILE];
        for (int q = 0; q < TILE; q++) {
          float *p = weights + q * wide, *s = slopes + q * wide;
          by[q] = scale, places[q] = q < count ? q_gradient + first + q * step : spare;
          if (q >= count) {
            memset(p, 0, end * sizeof(float)), memset(s, 0, end * sizeof(float));
            continue;
          }
          const int64_t length = given.lengths[at + q];
          hide(given, b, length, p);
          for (int64_t t = length; t < end; t++) p[t] = -INFINITY;
          const float *result = out + first + q * step, log = logs[(at + q) * given.heads + head];
          vec along = {};
          for (int j = 0; j < HEAD_DIM; j += LANES) along += load(result + j) * load(back.rows[q] + j);
          const float mean = total(along);
          for (int64_t t = 0; t < end; t += LANES) {
            vec weight = exponential(load(p + t) - log);
            store(p + t, weight);
            store(s + t, weight * (load(s + t) - mean));
          }
        }
        mix<TILE>(slopes, wide, end, held.k, nullptr, by, places);
        spread(slopes, wide, end, tile, k_sums);
        spread(weights, wide, end, back, v_sums);
      }
      for (int64_t t = 0; t < given.length; t++) {
        memcpy(k_gradient + place + t * step, k_sums + t * HEAD_DIM, HEAD_DIM * sizeof(float));
        memcpy(v_gradient + place + t * step, v_sums + t * HEAD_DIM, HEAD_DIM * sizeof(float));
      }
    }
  }
}
