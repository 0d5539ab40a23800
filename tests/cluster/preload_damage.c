/* preload_damage: LD_PRELOAD before libzmq that damages one message part as it is sent.
 *
 * DAMAGE_AT is the number of the part, from 0, of those that lib/net sends (not the routing ids of
 * a ROUTER); DAMAGE_HOW is flip (a bit in the middle), cut (to half), grow (8 bytes more). */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

enum { ROUTING_ID = 5 };

int zmq_msg_send(zmq_msg_t *part, void *socket, int flags)
{
	static atomic_ulong sent;
	int (*real)(zmq_msg_t *, void *, int) = dlsym(RTLD_NEXT, "zmq_msg_send");
	const char *at = getenv("DAMAGE_AT"), *how = getenv("DAMAGE_HOW");
	size_t len = zmq_msg_size(part), want = len;
	zmq_msg_t other;
	int rc;

	if (!at || !how || len <= ROUTING_ID || atomic_fetch_add(&sent, 1) != strtoul(at, NULL, 10))
		return real(part, socket, flags);
	if (!strcmp(how, "cut"))
		want = len / 2;
	else if (!strcmp(how, "grow"))
		want = len + 8;
	zmq_msg_init_size(&other, want);
	memset(zmq_msg_data(&other), 0xff, want);
	memcpy(zmq_msg_data(&other), zmq_msg_data(part), want < len ? want : len);
	if (want == len)
		((unsigned char *)zmq_msg_data(&other))[len / 2] ^= 4;
	rc = real(&other, socket, flags);
	zmq_msg_close(rc < 0 ? &other : part);
	if (rc >= 0)
		zmq_msg_init(part);
	return rc;
}
