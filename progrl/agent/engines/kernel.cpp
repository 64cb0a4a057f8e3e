// What a decode step does between its matrix products: norms, attention of one token of each row
// over its slot's cache, and the gate of the feed-forward. In float32, each row the same whatever
// the others are. The model's shape is fixed when this is compiled: HEADS, KV_HEADS, HEAD_DIM; all
// widths are multiples of 16.

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef float v16 __attribute__((vector_size(64), aligned(4)));
typedef float v8 __attribute__((vector_size(32)));
typedef float v4 __attribute__((vector_size(16)));
typedef int32_t i16 __attribute__((vector_size(64)));

enum { PARTS = HEAD_DIM / 16, HALF = HEAD_DIM / 2, GROUP = HEADS / KV_HEADS };

static inline v16 load(const float *from) {
  v16 value;
  memcpy(&value, from, sizeof value);
  return value;
}

static inline void store(float *to, v16 value) { memcpy(to, &value, sizeof value); }

static inline float total(v16 a) {
  v8 b = __builtin_shufflevector(a, a, 0, 1, 2, 3, 4, 5, 6, 7) +
         __builtin_shufflevector(a, a, 8, 9, 10, 11, 12, 13, 14, 15);
  v4 c = __builtin_shufflevector(b, b, 0, 1, 2, 3) + __builtin_shufflevector(b, b, 4, 5, 6, 7);
  return (c[0] + c[2]) + (c[1] + c[3]);
}

// e^x for x <= 0, to a relative error of about 1e-7; 0 below -87.
static inline v16 exponential(v16 x) {
  const v16 log2e = (v16){} + 1.44269504f, low = (v16){} - 87.0f;
  i16 tiny = x < low;
  x = tiny ? low : x;
  i16 n = __builtin_convertvector(x * log2e - 0.5f, i16);  // nearest, since x is not positive
  v16 whole = __builtin_convertvector(n, v16);
  v16 r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
  v16 p = 1.9875691500e-4f * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  v16 scale = (v16)((n + 127) << 23);
  return tiny ? (v16){} : p * scale;
}

// A head's row: divided by its root mean square where it has a norm, and turned by its position.
static inline void turn(const float *from, const float *norm, float eps, const float *cosine,
                        const float *sine, float *to) {
  float row[HEAD_DIM];
  memcpy(row, from, sizeof row);
  if (norm) {
    v16 squares = {};
    for (int part = 0; part < PARTS; part++) {
      v16 x = load(row + 16 * part);
      squares += x * x;
    }
    float by = 1.0f / sqrtf(total(squares) / HEAD_DIM + eps);
    for (int j = 0; j < HEAD_DIM; j++) row[j] *= by * norm[j];
  }
  for (int j = 0; j < HALF; j++) {
    float first = row[j], second = row[j + HALF];
    to[j] = first * cosine[j] - second * sine[j];
    to[j + HALF] = second * cosine[j] + first * sine[j];
  }
}

// softmax(scores) in place over `length` scores, with room for a multiple of 16; 1 / their sum.
static inline float weigh(float *scores, int64_t length) {
  for (int64_t t = length; t % 16; t++) scores[t] = -INFINITY;
  v16 most = load(scores), sum = {};
  for (int64_t t = 16; t < length; t += 16) {
    v16 x = load(scores + t);
    most = x > most ? x : most;
  }
  float top = most[0];
  for (int j = 1; j < 16; j++) top = most[j] > top ? most[j] : top;
  for (int64_t t = 0; t < length; t += 16) {
    v16 weight = exponential(load(scores + t) - top);
    store(scores + t, weight);
    sum += weight;
  }
  return 1.0f / total(sum);
}

// Append a token to each row's slot and attend from it.
//   qkv [rows, (HEADS + 2 KV_HEADS) HEAD_DIM], norms [HEADS + KV_HEADS, HEAD_DIM] or null,
//   cosine, sine [positions, HEAD_DIM / 2], keys, values [slots, KV_HEADS, capacity, HEAD_DIM],
//   out [rows, HEADS HEAD_DIM], scores: room for GROUP rows of capacity + 16.
extern "C" void attend(int64_t rows, const int64_t *slots, const int64_t *positions,
                       const float *qkv, const float *norms, float eps, float scale,
                       const float *cosine, const float *sine, float *keys, float *values,
                       int64_t capacity, float *scores, float *out) {
  const int64_t room = capacity + 16;
  for (int64_t row = 0; row < rows; row++) {
    const float *x = qkv + row * (HEADS + 2 * KV_HEADS) * HEAD_DIM;
    const int64_t at = positions[row], length = at + 1;
    const float *c = cosine + at * HALF, *s = sine + at * HALF;
    for (int head = 0; head < KV_HEADS; head++) {
      const int64_t place = (slots[row] * KV_HEADS + head) * capacity * HEAD_DIM;
      float *k = keys + place, *v = values + place;
      const int key = HEADS + head;
      turn(x + key * HEAD_DIM, norms ? norms + key * HEAD_DIM : 0, eps, c, s, k + at * HEAD_DIM);
      memcpy(v + at * HEAD_DIM, x + (key + KV_HEADS) * HEAD_DIM, HEAD_DIM * sizeof(float));
      v16 q[GROUP][PARTS];
      for (int g = 0; g < GROUP; g++) {
        const int query = head * GROUP + g;
        float turned[HEAD_DIM];
        turn(x + query * HEAD_DIM, norms ? norms + query * HEAD_DIM : 0, eps, c, s, turned);
        for (int part = 0; part < PARTS; part++) q[g][part] = load(turned + 16 * part) * scale;
      }
      for (int64_t t = 0; t < length; t++) {
        for (int g = 0; g < GROUP; g++) {
          v16 sum = {};
          for (int part = 0; part < PARTS; part++)
            sum += q[g][part] * load(k + t * HEAD_DIM + 16 * part);
          scores[g * room + t] = total(sum);
        }
      }
      float by[GROUP];
      for (int g = 0; g < GROUP; g++) by[g] = weigh(scores + g * room, length);
      v16 mixed[GROUP][PARTS] = {};
      for (int64_t t = 0; t < length; t++) {
        for (int g = 0; g < GROUP; g++) {
          const float weight = scores[g * room + t];
          for (int part = 0; part < PARTS; part++)
            mixed[g][part] += weight * load(v + t * HEAD_DIM + 16 * part);
        }
      }
      for (int g = 0; g < GROUP; g++)
        for (int part = 0; part < PARTS; part++)
          store(out + (row * HEADS + head * GROUP + g) * HEAD_DIM + 16 * part,
                mixed[g][part] * by[g]);
    }
  }
}

// out [rows, width] = x / rms(x) * weight.
extern "C" void norm(int64_t rows, int64_t width, const float *from, const float *weight, float eps,
                     float *out) {
  for (int64_t row = 0; row < rows; row++, from += width, out += width) {
    v16 squares = {};
    for (int64_t j = 0; j < width; j += 16) squares += load(from + j) * load(from + j);
    const float by = 1.0f / sqrtf(total(squares) / width + eps);
    for (int64_t j = 0; j < width; j += 16) store(out + j, load(from + j) * by * load(weight + j));
  }
}

// out [rows, width] = silu(gate) * up, of rows [gate, up].
extern "C" void gate(int64_t rows, int64_t width, const float *both, float *out) {
  for (int64_t row = 0; row < rows; row++) {
    const float *x = both + 2 * row * width;
    for (int64_t j = 0; j < width; j += 16) {
      v16 a = load(x + j), away = a < 0 ? a : -a, e = exponential(away);
      v16 share = (a < 0 ? e : (v16){} + 1.0f) / (1.0f + e);
      store(out + row * width + j, a * share * load(x + width + j));
    }
  }
}
