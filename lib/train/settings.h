/* What hps-work's options mean: which data, read how, and what all processes must agree on. */
#ifndef HPS_TRAIN_SETTINGS_H
#define HPS_TRAIN_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "data/reader.h"
#include "doc/doc.h"
#include "train/work.h"

/* Can this process, with n_first replicas of the first stage, read what it is given? HPS_USAGE. */
enum hps_status hps_work_check_data(const struct hps_work_opts *o, uint32_t n_first,
				    struct hps_err *err);
/* precheck.c: parse the first million rows of --test, where it is files; before the job begins. */
enum hps_status hps_work_check_test(const struct hps_work_opts *o, uint32_t n_first,
				    struct hps_err *err);
/* How to read the rows to train on, and those to evaluate; false: there are none. */
bool hps_work_train_data(const struct hps_work_opts *o, uint32_t n_first,
			 struct hps_reader_opts *r);
bool hps_work_test_data(const struct hps_work_opts *o, uint32_t n_first, struct hps_reader_opts *r);
/* The settings that JOIN carries (train/agent.h); reads: digests of the data are in them. */
enum hps_status hps_work_settings(const struct hps_work_opts *o, bool reads, struct hps_doc **out,
				  struct hps_err *err);

#endif
