/* How does OpenBLAS get into the process? By dlopen(3), not by the linker: it starts a thread a
 * core as it is loaded, each with 128 MiB, before any code of ours could forbid it; commands that
 * multiply no matrix do without it; and where it is missing that can be told.
 */
#include "tensor/openblas_int.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"

/* What a thread that multiplies takes: BUFFER_SIZE of OpenBLAS on x86-64, and its alignment. */
enum { BUFFER_BYTES = (128 << 20) + (64 << 10) };

static struct {
	pthread_once_t once;
	struct hps_openblas blas;
	enum hps_status status;
	struct hps_err err;
	atomic_size_t users;
} loaded = { .once = PTHREAD_ONCE_INIT };

static void *open_library(void)
{
	static const char variable[] = "OPENBLAS_NUM_THREADS";
	char *before = getenv(variable);
	void *handle;

	before = before ? hps_strdup(before, NULL) : NULL;
	setenv(variable, "1", 1);
	handle = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
	if (before)
		setenv(variable, before, 1);
	else
		unsetenv(variable);
	free(before);
	return handle;
}

static void load(void)
{
	struct hps_openblas *b = &loaded.blas;

	b->handle = open_library();
	if (b->handle) { /* as POSIX has it for functions */
		*(void **)&b->sgemm = dlsym(b->handle, "cblas_sgemm");
		*(void **)&b->set_num_threads = dlsym(b->handle, "openblas_set_num_threads");
		*(void **)&b->corename = dlsym(b->handle, "openblas_get_corename");
	}
	if (!b->handle || !b->sgemm || !b->set_num_threads || !b->corename) {
		loaded.status =
			hps_err_set(&loaded.err, HPS_DEVICE, "cannot load OpenBLAS: %s", dlerror());
		hps_err_hint(&loaded.err, "install it: Debian and Ubuntu call it libopenblas0");
		return;
	}
	b->set_num_threads(1);
	hps_openblas_choose_kernels(b);
}

enum hps_status hps_openblas_load(const struct hps_openblas **out, struct hps_err *err)
{
	pthread_once(&loaded.once, load);
	if (loaded.status != HPS_OK && err)
		*err = loaded.err;
	*out = &loaded.blas;
	return loaded.status;
}

/* A product too large for the path of small matrices takes a buffer, which is kept from then on. */
static enum hps_status take_buffer(const struct hps_openblas *b, struct hps_err *err)
{
	enum { SIDE = 160 };
	float *a = hps_calloc(2 * SIDE * SIDE, sizeof(*a), err);

	if (!a)
		return HPS_MEMORY;
	b->sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, SIDE, SIDE, SIDE, 1, a, SIDE, a, SIDE, 0,
		 a + SIDE * SIDE, SIDE);
	free(a);
	return HPS_OK;
}

enum hps_status hps_openblas_room(const struct hps_openblas *b, struct hps_err *err)
{
	size_t had = atomic_fetch_add(&loaded.users, 1), taken = had ? 1 : 0;
	size_t bytes = (had + 1 - taken) * BUFFER_BYTES;
	void *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (room == MAP_FAILED) {
		atomic_fetch_sub(&loaded.users, 1);
		hps_err_set(err, HPS_MEMORY,
			    "OpenBLAS needs 128 MiB for each thread that computes, and cannot have "
			    "them for %zu",
			    had + 1);
		hps_err_hint(err, "see ulimit -v: it limits the memory of a process");
		return HPS_MEMORY;
	}
	munmap(room, bytes);
	return had ? HPS_OK : take_buffer(b, err);
}
