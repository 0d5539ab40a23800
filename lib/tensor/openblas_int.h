/* Private to lib/tensor. */
#ifndef HPS_TENSOR_OPENBLAS_INT_H
#define HPS_TENSOR_OPENBLAS_INT_H

/* OpenBLAS's name for the processor whose kernels it runs. */
const char *hps_openblas_kernels(void);

#endif
