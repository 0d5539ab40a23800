/* Private to lib/tensor: OpenBLAS, loaded when the first product is to be computed. */
#ifndef HPS_TENSOR_OPENBLAS_INT_H
#define HPS_TENSOR_OPENBLAS_INT_H

#include <cblas.h>
#include "base/err.h"

struct hps_openblas {
	void *handle; /* dlopen(3)'s */
	__typeof__(&cblas_sgemm) sgemm;
	__typeof__(&openblas_set_num_threads) set_num_threads;
	__typeof__(&openblas_get_corename) corename;
};

/* Loaded at the first call, for the life of the process. HPS_DEVICE: it is not installed. Any
 * thread, but for the environment, which is changed meanwhile: no other may read it just then. */
enum hps_status hps_openblas_load(const struct hps_openblas **out, struct hps_err *err);
/* Is there memory for one more thread to compute in? HPS_MEMORY: no; OpenBLAS would ask for it again
 * and again, for ever. */
enum hps_status hps_openblas_room(const struct hps_openblas *b, struct hps_err *err);

/* Have it run the kernels that the processor is good for. */
void hps_openblas_choose_kernels(const struct hps_openblas *b);

#endif
