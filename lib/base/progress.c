/* A progress bar on a terminal's standard error; silent elsewhere. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/text_int.h"

enum { BAR = 24, REDRAW_MS = 100 };

/* One bar a process, one thread: the terminal has one last line. */
static struct {
	bool on;
	char what[48];
	uint64_t total;
	int64_t start_ms, drawn_ms;
} bar;

void hps_progress_start(const char *what, uint64_t total)
{
	bar.on = hps_log_level() >= HPS_LOG_NORMAL && isatty(STDERR_FILENO);
	if (!bar.on)
		return;
	snprintf(bar.what, sizeof(bar.what), "%s", what);
	bar.total = total;
	bar.start_ms = hps_now_ms();
	bar.drawn_ms = bar.start_ms - REDRAW_MS;
}

/* "[=====>      ]  43% 12 s left", or the bare count where the total is unknown. */
static void draw_bar(char *out, size_t size, uint64_t done, int64_t now_ms)
{
	double share = (double)done / (double)bar.total;
	double spent_s = 1e-3 * (double)(now_ms - bar.start_ms);
	char cells[BAR + 1];

	if (bar.total == 0) {
		snprintf(out, size, "%" PRIu64, done);
		return;
	}
	if (share > 1)
		share = 1;
	memset(cells, ' ', BAR);
	memset(cells, '=', (size_t)(share * BAR));
	cells[BAR] = '\0';
	if (share > 0.01 && share < 1)
		snprintf(out, size, "[%s] %3.0f%% %.0f s left", cells, 100 * share,
			 spent_s * (1 - share) / share);
	else
		snprintf(out, size, "[%s] %3.0f%%", cells, 100 * share);
}

void hps_progress_set(uint64_t done, const char *text)
{
	int64_t now = hps_now_ms();
	struct winsize win = { 0 };
	char middle[96], line[512];
	size_t cols = 80;

	bool last = bar.total && done >= bar.total;

	if (!bar.on || (!last && now - bar.drawn_ms < REDRAW_MS))
		return;
	bar.drawn_ms = now;
	draw_bar(middle, sizeof(middle), done, now);
	snprintf(line, sizeof(line), "%s %s  %s", bar.what, middle, text ? text : "");
	if (!ioctl(STDERR_FILENO, TIOCGWINSZ, &win) && win.ws_col > 1)
		cols = win.ws_col;
	if (cols <= sizeof(line))
		line[cols - 1] = '\0'; /* one column free: a full line would wrap */
	hps_text_mask(line);

	char out[sizeof(line) + 8];
	int n = snprintf(out, sizeof(out), "\r%s\033[K", line);
	hps_text_bar(out, (size_t)n);
}

void hps_progress_end(void)
{
	if (bar.on)
		hps_text_bar("", 0);
	bar.on = false;
}
