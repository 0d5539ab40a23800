/* What feature does a dense value become? */
#include "data/preprocess.h"

#include <float.h>
#include <math.h>

static float to_float(double x)
{
	if (isnan(x)) /* infinity times a scale of zero */
		return 0;
	return (float)fmin(fmax(x, -(double)FLT_MAX), (double)FLT_MAX) + 0.0f;
}

float hps_preprocess_value(const struct hps_preprocess *p, double x)
{
	if (p->transform == HPS_TRANSFORM_SIGNED_LOG)
		x = copysign(log1p(fabs(x)), x);
	return to_float(x * p->scale);
}

void hps_preprocess_init(struct hps_preprocess *p, const struct hps_model *m)
{
	p->transform = m == NULL ? HPS_TRANSFORM_NONE : m->preprocess.transform;
	p->scale = m == NULL ? 1 : m->preprocess.scale;
	p->missing = m == NULL ? 0 : to_float(m->preprocess.missing);
	for (int i = 0; i < HPS_PREPROCESS_SMALL; i++)
		p->small[i] = hps_preprocess_value(p, i);
}
