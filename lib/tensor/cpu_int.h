/* The CPU's elementwise kernels, private to lib/tensor: slots of struct hps_backend. */
#ifndef HPS_TENSOR_CPU_INT_H
#define HPS_TENSOR_CPU_INT_H

#include "tensor/backend.h"

void hps_cpu_bias_act(float *y, const float *bias, int m, int n, int ld, enum hps_act_fn act);
void hps_cpu_act_grad(float *dy, int ldd, const float *y, int ldy, int m, int n,
		      enum hps_act_fn act, float *db);
void hps_cpu_copy2d(float *out, int ldo, const float *in, int ldi, int m, int n, bool add);

#endif
