#include "mode_choice.h"

#include <math.h>

/* Up to here USB carries raw pictures well, and they need no decoding. */
#define SMALL_PIXELS (640 * 480)

/* Criteria in the order of their weight; less is better. */
typedef struct {
    double size_distance; /* 0: the very size */
    double fps_missing;
    int format_rank;
    double fps_excess;
} Score;

static int format_rank(const CamDeviceMode *mode)
{
    gboolean small = mode->width * mode->height <= SMALL_PIXELS;

    switch (mode->kind) {
    case CAM_FORMAT_H264:
        return 0;
    case CAM_FORMAT_RAW:
        return small ? 1 : 3;
    case CAM_FORMAT_MJPEG:
        break;
    }
    return 2;
}

static Score score(const CamDeviceMode *mode, const CamMode *wanted)
{
    double fps = (double)mode->fps_n / mode->fps_d;

    return (Score){
        /* Logarithms, so that half the size is as far away as twice the size. */
        .size_distance = fabs(log((double)mode->width / wanted->width)) +
                         fabs(log((double)mode->height / wanted->height)),
        /* 29.97 is 30. */
        .fps_missing = fps + 0.5 >= wanted->fps ? 0 : wanted->fps - fps,
        .format_rank = format_rank(mode),
        .fps_excess = MAX(0, fps - wanted->fps),
    };
}

static gboolean is_better(const Score *a, const Score *b)
{
    if (fabs(a->size_distance - b->size_distance) > 1e-9)
        return a->size_distance < b->size_distance;
    if (fabs(a->fps_missing - b->fps_missing) > 1e-9)
        return a->fps_missing < b->fps_missing;
    if (a->format_rank != b->format_rank)
        return a->format_rank < b->format_rank;
    return a->fps_excess < b->fps_excess;
}

int cam_mode_choose(const CamDeviceMode *modes, guint n, const CamMode *wanted)
{
    Score best = {0};
    int choice = -1;

    for (guint i = 0; i < n; i++) {
        Score this_score = score(&modes[i], wanted);

        if (choice < 0 || is_better(&this_score, &best)) {
            best = this_score;
            choice = (int)i;
        }
    }
    return choice;
}
