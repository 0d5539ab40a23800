/* The CPU backend: matrix products by OpenBLAS (cblas_sgemm(3)), single-threaded, as one
 * compute thread is one unit of a plan; the rest by elementwise.c.
 */
#include "tensor/backend.h"

#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "tensor/cpu_int.h"
#include "tensor/openblas_int.h"

/* enum hps_device of lib/job, which lies above: a test holds the two equal. */
enum { DEVICE_CPU = 0, DEVICE_CUDA = 1 };

static void *cpu_alloc(size_t bytes, struct hps_err *err)
{
	return hps_calloc_aligned(bytes, 1, err);
}

static enum hps_status cpu_copy(void *out, const void *in, size_t bytes, struct hps_err *err)
{
	if (bytes > 0)
		memcpy(out, in, bytes);
	return HPS_OK;
}

static void cpu_gemm(bool ta, bool tb, int m, int n, int k, float alpha, const float *a, int lda,
		     const float *b, int ldb, float beta, float *c, int ldc)
{
	const struct hps_openblas *blas;

	if (m == 0 || n == 0 || hps_openblas_load(&blas, NULL) != HPS_OK)
		return; /* whoever has the backend has loaded it */
	blas->sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans,
		    m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

static const char *cpu_kernels(void)
{
	const struct hps_openblas *blas;

	return hps_openblas_load(&blas, NULL) == HPS_OK ? blas->corename() : "none";
}

const struct hps_backend *hps_backend_openblas(void)
{
	static const struct hps_backend backend = {
		.abi = HPS_BACKEND_ABI,
		.name = "openblas",
		.host_memory = true,
		.kernels = cpu_kernels,
		.alloc = cpu_alloc,
		.release = free,
		.upload = cpu_copy,
		.download = cpu_copy,
		.gemm = cpu_gemm,
		.bias_act = hps_cpu_bias_act,
		.act_grad = hps_cpu_act_grad,
		.copy2d = hps_cpu_copy2d,
	};
	const struct hps_openblas *blas;

	return hps_openblas_load(&blas, NULL) == HPS_OK ? &backend : NULL;
}

enum hps_status hps_backend_for(int device, const struct hps_backend **out, struct hps_err *err)
{
	const struct hps_openblas *blas;
	enum hps_status st;

	switch (device) {
	case DEVICE_CPU:
		st = hps_openblas_load(&blas, err);
		if (st == HPS_OK)
			st = hps_openblas_room(blas, err);
		if (st == HPS_OK)
			*out = hps_backend_openblas();
		return st;
	case DEVICE_CUDA:
		hps_err_set(err, HPS_DEVICE,
			    "no backend for device cuda: this hps has only openblas");
		hps_err_hint(err, "declare the type by another: \"like\": \"cpu\", \"speed\": 12, "
				  "and place its stages on cpu to run them");
		return HPS_DEVICE;
	default:
		return hps_err_set(err, HPS_DEVICE, "no backend for device number %d", device);
	}
}
