/* Text on its way to a terminal: private to lib/base. */
#ifndef HPS_BASE_TEXT_INT_H
#define HPS_BASE_TEXT_INT_H

#include <stdbool.h>
#include <stddef.h>

/* Replace control characters (C0, DEL, C1 in UTF-8) and bytes that are not UTF-8 by '?':
 * text from a file must not drive the user's terminal. */
void hps_text_mask(char *s);
/* The same of len bytes, with the control characters in keep left as they are. */
void hps_text_mask_but(char *s, size_t len, const char *keep);

/* Write a message to standard error in one write(2) where the kernel allows, first wiping the
 * progress bar if one is on the screen, and to the descriptor of hps_text_keep. Errors are
 * ignored: there is nowhere to tell them. */
void hps_text_emit(const char *s, size_t len);

/* A progress bar takes the terminal's last line; len 0: it leaves. */
void hps_text_bar(const char *s, size_t len);

/* Messages go to fd, too, from now on; -1: no more. */
void hps_text_keep(int fd);

#endif
