/* float32 arrays as NumPy files (format version 1.0: numpy.lib.format), C order. */
#ifndef HPS_SERVE_NPY_H
#define HPS_SERVE_NPY_H

#include <stdint.h>
#include "base/err.h"

/* Write data (rows, cols) to path by rename; rows 0: a vector (cols). */
enum hps_status hps_npy_write(const char *path, const float *data, uint64_t rows, uint64_t cols,
			      struct hps_err *err);

#endif
