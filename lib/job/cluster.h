/* The cluster section: resource types, hosts, network.
 *
 *   { "types": [ { "name": "cpu", "device": "cpu", "price": 0.04, "limit": 64,
 *                  "memory": 4e9, "link": { "bandwidth": 1.25e9, "latency": 5e-5 } },
 *                { "name": "v100", "device": "cuda", "price": 2.42, "limit": 8,
 *                  "like": "cpu", "speed": 12 } ],
 *     "hosts": [ { "name": "localhost", "address": "127.0.0.1", "memory": 2.4e10,
 *                  "units": { "cpu": 2 }, "ps_cores": 2 } ],
 *     "network": { "bandwidth": 1.25e9, "latency": 5e-5 } }
 *
 * One unit of a CPU type is one core = one replica = one compute thread.
 *
 * Also: a type's "op_speed": { "dense": 20, "embedding": 0.5 } for op kinds whose speed
 * differs from "speed" (both only with "like", which names a type without one); a host's
 * "cores"; "ps_price" beside "network". "description" and "comment" may stand in every
 * object. Names are as in model.h.
 *
 * Defaults: device cpu, no limit, memory 0, link and network unstated, speed 1; no hosts;
 * address 127.0.0.1, cores 0 (the sum of the host's CPU units), ps_cores the host's cores;
 * ps_price the first CPU type's price, 0 without one. Name, price and units must be there.
 */
#ifndef HPS_JOB_CLUSTER_H
#define HPS_JOB_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>
#include "doc/doc.h"

enum hps_device { HPS_DEVICE_CPU, HPS_DEVICE_CUDA };

struct hps_link {
	double bandwidth; /* bytes a second each way; 0 = not stated */
	double latency;	  /* seconds one way */
};

/* Speed of an op kind relative to the `like` type; op_speed[op] 0 = use `speed`. */
struct hps_type {
	char *name;
	enum hps_device device;
	double price;	/* dollars per unit-hour */
	uint32_t limit; /* units in all; 0 in the document is refused, absent = no limit */
	double memory;	/* bytes a unit; 0 = not stated */
	struct hps_link link;
	char *like;	    /* declared by another type; NULL = to be measured */
	double speed;	    /* with like: times as fast */
	double op_speed[8]; /* with like: per enum hps_op, 0 = speed */
};

struct hps_host {
	char *name, *address; /* address: for tcp; "127.0.0.1" by default */
	double memory;	      /* bytes; 0 = not stated */
	uint32_t *units;      /* n_types: units of each type here */
	uint32_t cores;	      /* physical cores that CPU units and PS threads share; 0 = sum */
	uint32_t ps_cores;    /* PS shards this host may run; default: its cores */
};

struct hps_cluster {
	struct hps_type *type;
	uint32_t n_types;
	struct hps_host *host;
	uint32_t n_hosts;
	struct hps_link network; /* between hosts; wins over measured and per-type links there */
	double ps_price;	 /* dollars per PS core-hour; default: the first CPU type's price */
};

#define HPS_NO_LIMIT UINT32_MAX
enum { HPS_MAX_TYPES = 256, HPS_MAX_HOSTS = 100000, HPS_MAX_UNITS = 1 << 20 };

enum hps_status hps_cluster_read(const struct hps_at *at, struct hps_cluster *c,
				 struct hps_err *err);
struct hps_doc *hps_cluster_write(const struct hps_cluster *c);
void hps_cluster_release(struct hps_cluster *c);

/* This machine: one host "localhost", one type "cpu" with `cores` (>= 1) units and limit,
 * price 0.04. */
enum hps_status hps_cluster_here(uint32_t cores, struct hps_cluster *c, struct hps_err *err);
/* Index by name, or -1. */
int hps_cluster_type(const struct hps_cluster *c, const char *name);

#endif
