/* Draws the test picture and the "no signal" picture into I420 images. */
#pragma once

#include <gst/video/video.h>

typedef struct {
    guint8 *plane[3];
    int stride[3];
    int width, height;
} CamImage;

/* DATA is one buffer laid out as INFO says. */
CamImage cam_image_of(guint8 *data, const GstVideoInfo *info);

/* The still part of the test picture: colour bars over a gradient. */
void cam_picture_test_background(CamImage *image);

/* Adds what moves: barcode, clock, frame number, a square that goes to and fro, and one in the top
 * right that is white for the first 100 ms of each second. */
void cam_picture_test_frame(CamImage *image, guint32 number, gint64 wall_ms);

void cam_picture_no_signal(CamImage *image, gint64 wall_ms);

/*
 * The barcode carries the 32 bit frame number in the top left of the test picture. Its cells are
 * squares of width / 40 pixels (rounded down to even, at least 8). With c for that size, cell i
 * lies at x = c + i * c, y = c:
 *   cell 0 white and cell 1 black (the reference), cells 2 … 33 the bits 31 … 0; white is 1.
 * White is luma 235, black 16, chroma 128. It is left out where 35 cells are wider than the
 * picture. A cell read at its centre survives coarse compression and scaling.
 */
#define CAM_BARCODE_CELLS 34
int cam_barcode_cell(int width);

/* Reads it back from a luma plane; FALSE when the reference cells are not there. */
gboolean cam_barcode_read(const guint8 *luma, int stride, int width, int height, guint32 *number);
