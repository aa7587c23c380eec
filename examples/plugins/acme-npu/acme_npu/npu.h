/*
 * A simulator of the matrix unit, in front of each kernel that uses it.
 *
 * The scratchpad has 256 slots of 8x8 f32, 64 KiB. A slot that was never loaded holds NaN, so a
 * program that reads it gets NaN. The unit counts its cycles: 8 per product, and one per row of 32
 * bytes that is copied, while the unit is busy. Each thread has a unit of its own.
 */
#ifndef ACME_NPU_H
#define ACME_NPU_H

#include <stdint.h>

enum { NPU_SIDE = 8, NPU_SLOTS = 256 };

typedef struct {
  float slot[NPU_SLOTS][NPU_SIDE][NPU_SIDE];
  int loaded[NPU_SLOTS];
  int64_t unit_cycles; /* spent on products */
  int64_t copy_cycles; /* spent on copies that no product hides */
  int64_t hidden;      /* cycles of the last product that a copy may overlap */
} npu_unit;

static _Thread_local npu_unit npu;

static inline int npu_is_slot(int number) {
  return number >= 0 && number < NPU_SLOTS;
}

static inline int64_t npu_count(int64_t size) {
  return size < 0 ? 0 : size > NPU_SIDE ? NPU_SIDE : size;
}

static inline void npu_copied(npu_unit *u, int64_t rows) {
  const int64_t left = rows - u->hidden;
  u->hidden = left < 0 ? -left : 0;
  u->copy_cycles += left > 0 ? left : 0;
}

/* Fills a slot with a block of memory, and with zeros around it. */
static inline void npu_load(npu_unit *u, int slot, const float *from, int64_t rows, int64_t columns,
                            int64_t row_stride, int64_t column_stride) {
  if (!npu_is_slot(slot)) return;
  rows = npu_count(rows);
  columns = npu_count(columns);
  for (int64_t i = 0; i < NPU_SIDE; ++i)
    for (int64_t j = 0; j < NPU_SIDE; ++j)
      u->slot[slot][i][j] =
          i < rows && j < columns ? from[i * row_stride + j * column_stride] : 0.0f;
  u->loaded[slot] = 1;
  npu_copied(u, rows);
}

/* Writes a slot to a block of memory. */
static inline void npu_store(npu_unit *u, int slot, float *to, int64_t rows, int64_t columns,
                             int64_t row_stride, int64_t column_stride) {
  if (!npu_is_slot(slot)) return;
  rows = npu_count(rows);
  columns = npu_count(columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      to[i * row_stride + j * column_stride] =
          u->loaded[slot] ? u->slot[slot][i][j] : __builtin_nanf("");
  npu_copied(u, rows);
}

/* slot c += slot a * slot b */
static inline void npu_multiply(npu_unit *u, int c, int a, int b) {
  if (!npu_is_slot(c) || !npu_is_slot(a) || !npu_is_slot(b)) return;
  const int ready = u->loaded[c] && u->loaded[a] && u->loaded[b];
  for (int i = 0; i < NPU_SIDE; ++i)
    for (int j = 0; j < NPU_SIDE; ++j) {
      float sum = ready ? u->slot[c][i][j] : __builtin_nanf("");
      for (int k = 0; k < NPU_SIDE; ++k) sum += u->slot[a][i][k] * u->slot[b][k][j];
      u->slot[c][i][j] = sum;
    }
  u->unit_cycles += NPU_SIDE;
  u->hidden = NPU_SIDE;
}

#endif
