/* What every cmocka program includes, in the order that cmocka wants. */
#ifndef HPS_TESTS_CM_H
#define HPS_TESTS_CM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#endif
