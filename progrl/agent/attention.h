// Attention over a few queries at once, in float32, of as many numbers side by side as a register of
// the processor holds: LANES. Keys lie in blocks of so many tokens, [tokens / LANES][HEAD_DIM][LANES],
// so that the scores of a block are summed up at once; values are [tokens][HEAD_DIM]. HEAD_DIM is a
// multiple of 16, and so of LANES.

#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX2__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
enum { PARTS = HEAD_DIM / LANES, HALF = HEAD_DIM / 2 };

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int32_t ints __attribute__((vector_size(4 * LANES)));

static inline vec load(const float *from) {
  vec value;
  memcpy(&value, from, sizeof value);
  return value;
}

static inline void store(float *to, vec value) { memcpy(to, &value, sizeof value); }

static inline float total(vec a) {
  float some[LANES];
  memcpy(some, &a, sizeof some);
  for (int n = LANES / 2; n; n /= 2)
    for (int j = 0; j < n; j++) some[j] += some[j + n];
  return some[0];
}

// e^x for x <= 0, to a relative error of about 1e-7; 0 below -87.
static inline vec exponential(vec x) {
  const vec log2e = (vec){} + 1.44269504f, low = (vec){} - 87.0f;
  ints tiny = x < low;
  x = tiny ? low : x;
  ints n = __builtin_convertvector(x * log2e - 0.5f, ints);  // nearest, since x is not positive
  vec whole = __builtin_convertvector(n, vec);
  vec r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
  vec p = 1.9875691500e-4f * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  vec scale = (vec)((n + 127) << 23);
  return tiny ? (vec){} : p * scale;
}

static inline vec sigmoid(vec x) {
  vec e = exponential(x < 0 ? x : -x);
  return (x < 0 ? e : (vec){} + 1.0f) / (1.0f + e);
}

// A head's row, turned by its position's angles [HALF]; `to` is another place.
static inline void rotate(const float *row, const float *cosine, const float *sine, float *to) {
  for (int j = 0; j < HALF; j++) {
    to[j] = row[j] * cosine[j] - row[j + HALF] * sine[j];
    to[j + HALF] = row[j + HALF] * cosine[j] + row[j] * sine[j];
  }
}

// 1 / the root mean square of `width` numbers.
static inline float scale_of(const float *x, int width, float eps) {
  vec squares = {};
  for (int j = 0; j < width; j += LANES) squares += load(x + j) * load(x + j);
  return 1.0f / sqrtf(total(squares) / width + eps);
}

// The scores of Q queries with LANES * B keys; `values` of the same tokens, where there are any, are
// sent for meanwhile.
template <int Q, int B>
static inline void score(const float *const *queries, const float *keys, const float *values,
                         float *scores, int64_t room) {
  vec sums[Q][B] = {};
  for (int j = 0; j < HEAD_DIM; j++) {
    for (int b = 0; b < B; b++) {
      const int64_t place = (b * HEAD_DIM + j) * LANES;
      vec key = load(keys + place);
      if (values) __builtin_prefetch(values + place, 0, 2);
      for (int q = 0; q < Q; q++) sums[q][b] += queries[q][j] * key;
    }
  }
  for (int q = 0; q < Q; q++)
    for (int b = 0; b < B; b++) store(scores + q * room + LANES * b, sums[q][b]);
}

// softmax over the first `length` scores, in place; 0 from there to `end`. Not yet divided by their
// sum: returns 1 / it, and where it is asked for the logarithm of the sum of all e^score.
static inline float weigh(float *scores, int64_t length, int64_t end, float *log_total = 0) {
  for (int64_t t = length; t < end; t++) scores[t] = -INFINITY;
  vec most = load(scores), sum = {};
  for (int64_t t = LANES; t < end; t += LANES) {
    vec x = load(scores + t);
    most = x > most ? x : most;
  }
  float top = most[0];
  for (int j = 1; j < LANES; j++) top = most[j] > top ? most[j] : top;
  for (int64_t t = 0; t < end; t += LANES) {
    vec weight = exponential(load(scores + t) - top);
    store(scores + t, weight);
    sum += weight;
  }
  const float all = total(sum);
  if (log_total) *log_total = top + logf(all);
  return 1.0f / all;
}

// out [Q][HEAD_DIM] = weights [Q][end] * values, times `by`; `next`, where they are given, are the
// keys that are needed after them.
template <int Q>
static inline void mix(const float *weights, int64_t room, int64_t end, const float *values,
                       const float *next, const float *by, float *const *out) {
  constexpr int W = PARTS % 2 ? 1 : 2;
  for (int part = 0; part < PARTS; part += W) {
    vec mixed[Q][W] = {};
    for (int64_t t = 0; t < end; t += 8) {
      vec few[Q][W] = {};
      for (int i = 0; i < 8; i++) {
        const int64_t place = (t + i) * HEAD_DIM + LANES * part;
        for (int w = 0; w < W; w++) {
          vec value = load(values + place + LANES * w);
          if (next) __builtin_prefetch(next + place + LANES * w, 0, 2);
          for (int q = 0; q < Q; q++) few[q][w] += weights[q * room + t + i] * value;
        }
      }
      for (int q = 0; q < Q; q++)
        for (int w = 0; w < W; w++) mixed[q][w] += few[q][w];
    }
    for (int q = 0; q < Q; q++)
      for (int w = 0; w < W; w++) store(out[q] + LANES * (part + w), mixed[q][w] * by[q]);
  }
}
