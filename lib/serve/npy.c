/* How NumPy's .npy format writes a float32 array. */
#include "serve/npy.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"

enum { PREFIX = 10, ALIGN = 64, ROOM = 128 }; /* magic, version and length; the data's alignment */

enum hps_status hps_npy_write(const char *path, const float *data, uint64_t rows, uint64_t cols,
			      struct hps_err *err)
{
	char head[ROOM + 1];
	struct hps_file_new f;
	enum hps_status st;
	char shape[48];
	size_t len, text;

	if (rows)
		snprintf(shape, sizeof(shape), "%llu, %llu", (unsigned long long)rows,
			 (unsigned long long)cols);
	else
		snprintf(shape, sizeof(shape), "%llu,", (unsigned long long)cols);
	memset(head, ' ', sizeof(head));
	memcpy(head, "\x93NUMPY\x01\x00", 8);
	len = (size_t)snprintf(head + PREFIX, sizeof(head) - PREFIX,
			       "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }", shape);
	head[PREFIX + len] = ' ';
	text = (PREFIX + len + 1 + ALIGN - 1) / ALIGN * ALIGN - PREFIX; /* spaces, then a newline */
	head[PREFIX + text - 1] = '\n';
	head[8] = (char)(text & 0xff);
	head[9] = (char)(text >> 8);
	st = hps_file_create(&f, path, 0666, err);
	if (st != HPS_OK)
		return st;
	st = hps_file_append(&f, head, PREFIX + text, err);
	if (st == HPS_OK)
		st = hps_file_append(&f, data, (rows ? rows : 1) * cols * sizeof(float), err);
	if (st == HPS_OK)
		return hps_file_commit(&f, err);
	hps_file_discard(&f);
	return st;
}
