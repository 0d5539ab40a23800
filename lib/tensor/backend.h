/* Where arrays live and arithmetic runs: the vtable that CUDA enters later.
 * Layers never call BLAS themselves. Arrays are float32, row-major, on the backend's
 * device; for the CPU backend device memory is host memory. No slot keeps state, so
 * any number of threads may call them; every slot takes m == 0 and n == 0. The same
 * call on the same values returns the same bits. NaN in gives NaN out, also through relu.
 */
#ifndef HPS_TENSOR_BACKEND_H
#define HPS_TENSOR_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

enum { HPS_BACKEND_ABI = 1 };

/* Activations; the same order as enum hps_act of lib/job (a test holds the two equal). */
enum hps_act_fn { HPS_FN_LINEAR, HPS_FN_RELU, HPS_FN_SIGMOID, HPS_FN_TANH };

struct hps_backend {
	uint32_t abi;	  /* HPS_BACKEND_ABI: checked before anything else */
	const char *name; /* "openblas" */
	/* The host may read and write device memory: ops without a slot here (gather,
	 * scatter, cosine, losses) run on the host and need it; lib/nn asks first. */
	bool host_memory;
	/* What the products run on, for a person: "SkylakeX". A constant. */
	const char *(*kernels)(void);

	void *(*alloc)(size_t bytes, struct hps_err *err); /* 64-byte aligned, zeroed */
	void (*release)(void *p);
	enum hps_status (*upload)(void *dev, const void *host, size_t bytes, struct hps_err *err);
	enum hps_status (*download)(void *host, const void *dev, size_t bytes, struct hps_err *err);

	/* C (m, n) = alpha op(A) op(B) + beta C; as cblas_sgemm(3), row-major, with leading
	 * dimensions; single-threaded. beta == 0 overwrites C, whatever it held. */
	void (*gemm)(bool ta, bool tb, int m, int n, int k, float alpha, const float *a, int lda,
		     const float *b, int ldb, float beta, float *c, int ldc);
	/* y (m, n) = act(y + bias), bias (n) or NULL. In place. sigmoid and tanh stay within
	 * 4 ulp of the exact value. */
	void (*bias_act)(float *y, const float *bias, int m, int n, int ld, enum hps_act_fn act);
	/* dz (m, n) = dy * act'(y), from the activation's output y; in place on dy. And db (n),
	 * unless NULL, += the column sums of dz, rows in ascending order. */
	void (*act_grad)(float *dy, int ldd, const float *y, int ldy, int m, int n,
			 enum hps_act_fn act, float *db);
	/* out (m, n) = or += in (m, n), each with its leading dimension. */
	void (*copy2d)(float *out, int ldo, const float *in, int ldi, int m, int n, bool add);
};

/* The CPU backend over OpenBLAS, which is loaded at the first call and computes in the thread that
 * calls. NULL: it is not installed. */
const struct hps_backend *hps_backend_openblas(void);

/* The backend of a device, for one more thread that computes: cuda is refused with HPS_DEVICE and a
 * reason until a plugin is there; HPS_MEMORY: a thread of cpu would find no room to compute in. */
enum hps_status hps_backend_for(int device /* enum hps_device */, const struct hps_backend **out,
				struct hps_err *err);

#endif
