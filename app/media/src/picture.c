#include "picture.h"

#include <string.h>
#include <time.h>

#define WHITE 235
#define BLACK 16
#define GREY 128

/* 5 × 7 glyphs, a row a byte, the leftmost dot in bit 4. */
static const struct {
    char c;
    guint8 row[7];
} font[] = {
    {'0', {0x0e, 0x11, 0x13, 0x15, 0x19, 0x11, 0x0e}},
    {'1', {0x04, 0x0c, 0x04, 0x04, 0x04, 0x04, 0x0e}},
    {'2', {0x0e, 0x11, 0x01, 0x06, 0x08, 0x10, 0x1f}},
    {'3', {0x1f, 0x02, 0x04, 0x06, 0x01, 0x11, 0x0e}},
    {'4', {0x02, 0x06, 0x0a, 0x12, 0x1f, 0x02, 0x02}},
    {'5', {0x1f, 0x10, 0x1e, 0x01, 0x01, 0x11, 0x0e}},
    {'6', {0x06, 0x08, 0x10, 0x1e, 0x11, 0x11, 0x0e}},
    {'7', {0x1f, 0x11, 0x01, 0x02, 0x04, 0x04, 0x04}},
    {'8', {0x0e, 0x11, 0x11, 0x0e, 0x11, 0x11, 0x0e}},
    {'9', {0x0e, 0x11, 0x11, 0x0f, 0x01, 0x02, 0x0c}},
    {':', {0x00, 0x04, 0x04, 0x00, 0x04, 0x04, 0x00}},
    {'.', {0x00, 0x00, 0x00, 0x00, 0x00, 0x0c, 0x0c}},
    {'A', {0x04, 0x0a, 0x11, 0x11, 0x1f, 0x11, 0x11}},
    {'G', {0x0e, 0x11, 0x10, 0x13, 0x11, 0x11, 0x0f}},
    {'I', {0x0e, 0x04, 0x04, 0x04, 0x04, 0x04, 0x0e}},
    {'L', {0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x1f}},
    {'N', {0x11, 0x19, 0x19, 0x15, 0x13, 0x13, 0x11}},
    {'O', {0x0e, 0x11, 0x11, 0x11, 0x11, 0x11, 0x0e}},
    {'S', {0x0f, 0x10, 0x10, 0x0e, 0x01, 0x01, 0x1e}},
};
#define GLYPH_ADVANCE 6

CamImage cam_image_of(guint8 *data, const GstVideoInfo *info)
{
    CamImage image = {.width = GST_VIDEO_INFO_WIDTH(info), .height = GST_VIDEO_INFO_HEIGHT(info)};

    for (guint i = 0; i < 3; i++) {
        image.plane[i] = data + GST_VIDEO_INFO_PLANE_OFFSET(info, i);
        image.stride[i] = GST_VIDEO_INFO_PLANE_STRIDE(info, i);
    }
    return image;
}

static void fill_plane(CamImage *image, int plane, int x, int y, int w, int h, guint8 value)
{
    for (int row = y; row < y + h; row++)
        memset(image->plane[plane] + (gsize)row * (gsize)image->stride[plane] + x, value, (gsize)w);
}

/* Fills a rectangle, clipped; for clean chroma its corners should be even. */
static void fill(CamImage *image, int x, int y, int w, int h, guint8 luma, guint8 cb, guint8 cr)
{
    w = MIN(w, image->width - x);
    h = MIN(h, image->height - y);
    if (x < 0 || y < 0 || w <= 0 || h <= 0)
        return;
    fill_plane(image, 0, x, y, w, h, luma);
    fill_plane(image, 1, x / 2, y / 2, (w + 1) / 2, (h + 1) / 2, cb);
    fill_plane(image, 2, x / 2, y / 2, (w + 1) / 2, (h + 1) / 2, cr);
}

static const guint8 *glyph(char c)
{
    for (guint i = 0; i < G_N_ELEMENTS(font); i++) {
        if (font[i].c == c)
            return font[i].row;
    }
    return NULL;
}

/* White text on a black box whose top left is (x, y); DOT is the size of one dot. */
static void draw_text(CamImage *image, int x, int y, int dot, const char *text)
{
    int length = (int)strlen(text);

    fill(image, x & ~1, y & ~1, (length * GLYPH_ADVANCE + 1) * dot, 9 * dot, BLACK, GREY, GREY);
    for (int i = 0; i < length; i++) {
        const guint8 *rows = glyph(text[i]);

        for (int row = 0; rows && row < 7; row++) {
            for (int column = 0; column < 5; column++) {
                int dot_x = x + (1 + i * GLYPH_ADVANCE + column) * dot;
                int dot_y = y + (1 + row) * dot;

                if (rows[row] & (0x10 >> column) && dot_x + dot <= image->width &&
                    dot_y + dot <= image->height)
                    fill_plane(image, 0, dot_x, dot_y, dot, dot, WHITE);
            }
        }
    }
}

static void clock_text(gint64 wall_ms, char text[16])
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm local;

    localtime_r(&seconds, &local);
    g_snprintf(text, 16, "%02d:%02d:%02d.%03d", local.tm_hour % 100, local.tm_min % 100,
               local.tm_sec % 100, (int)(wall_ms % 1000));
}

int cam_barcode_cell(int width)
{
    return MAX(8, width / 40 & ~1);
}

static gboolean barcode_fits(int width, int height)
{
    int cell = cam_barcode_cell(width);

    return (CAM_BARCODE_CELLS + 1) * cell <= width && 2 * cell <= height;
}

static void draw_barcode(CamImage *image, guint32 number)
{
    int cell = cam_barcode_cell(image->width);

    if (!barcode_fits(image->width, image->height))
        return;
    for (int i = 0; i < CAM_BARCODE_CELLS; i++) {
        gboolean white = i == 0 || (i >= 2 && number >> (33 - i) & 1);

        fill(image, cell + i * cell, cell, cell, cell, white ? WHITE : BLACK, GREY, GREY);
    }
}

static guint8 cell_luma(const guint8 *luma, int stride, int cell, int index)
{
    int x = cell + index * cell + cell / 2, y = cell + cell / 2;
    guint sum = 0;

    for (int dy = -1; dy <= 1; dy++) {
        for (int dx = -1; dx <= 1; dx++)
            sum += luma[(y + dy) * stride + x + dx];
    }
    return (guint8)(sum / 9);
}

gboolean cam_barcode_read(const guint8 *luma, int stride, int width, int height, guint32 *number)
{
    int cell = cam_barcode_cell(width), white, black;

    if (!barcode_fits(width, height))
        return FALSE;
    white = cell_luma(luma, stride, cell, 0);
    black = cell_luma(luma, stride, cell, 1);
    if (white - black < 64)
        return FALSE;
    *number = 0;
    for (int i = 2; i < CAM_BARCODE_CELLS; i++)
        *number = *number << 1 | (cell_luma(luma, stride, cell, i) > (white + black) / 2);
    return TRUE;
}

void cam_picture_test_background(CamImage *image)
{
    /* 75 % bars: white, yellow, cyan, green, magenta, red, blue, black. */
    static const guint8 bars[8][3] = {{180, 128, 128}, {162, 44, 142}, {131, 156, 44},
                                      {112, 72, 58},   {84, 184, 198}, {65, 100, 212},
                                      {35, 212, 114},  {16, 128, 128}};
    int bars_height = image->height * 2 / 3 & ~1;

    for (int i = 0; i < 8; i++) {
        int x = image->width * i / 8 & ~1, next = image->width * (i + 1) / 8 & ~1;

        fill(image, x, 0, next - x, bars_height, bars[i][0], bars[i][1], bars[i][2]);
    }
    fill(image, 0, bars_height, image->width, image->height - bars_height, BLACK, GREY, GREY);
    for (int y = bars_height; y < image->height; y++) {
        guint8 *row = image->plane[0] + (gsize)y * (gsize)image->stride[0];

        for (int x = 0; x < image->width; x++)
            row[x] = (guint8)(40 + 160 * x / image->width);
    }
}

static void draw_mover(CamImage *image, gint64 wall_ms)
{
    int size = MAX(8, image->height / 8 & ~1), room = image->width - size;
    /* To and fro once in 8 s. */
    int phase = (int)(wall_ms % 8000);
    int along = phase < 4000 ? phase : 8000 - phase;

    fill(image, (int)((gint64)room * along / 4000) & ~1, image->height * 3 / 4 & ~1, size, size,
         210, 44, 142);
}

/* Lights up with the test tone's beep. */
static void draw_flash(CamImage *image, gint64 wall_ms)
{
    int cell = cam_barcode_cell(image->width), x = image->width - 3 * cell;
    gboolean on = wall_ms % 1000 < 100;

    if (x >= 0)
        fill(image, x, 3 * cell, 2 * cell, 2 * cell, on ? WHITE : BLACK, GREY, GREY);
}

void cam_picture_test_frame(CamImage *image, guint32 number, gint64 wall_ms)
{
    int cell = cam_barcode_cell(image->width), dot = MAX(1, image->height / 120);
    char text[16];

    draw_barcode(image, number);
    clock_text(wall_ms, text);
    draw_text(image, cell, 3 * cell, dot, text);
    g_snprintf(text, sizeof(text), "%u", number);
    draw_text(image, cell, 3 * cell + 10 * dot, dot, text);
    draw_mover(image, wall_ms);
    draw_flash(image, wall_ms);
}

void cam_picture_no_signal(CamImage *image, gint64 wall_ms)
{
    int dot = MAX(1, MIN(image->width / 80, image->height / 24));
    int middle = image->height / 2;
    char text[16];

    fill(image, 0, 0, image->width, image->height, 48, 150, 120);
    draw_text(image, MAX(0, (image->width - 55 * dot) / 2), MAX(0, middle - 10 * dot), dot,
              "NO SIGNAL");
    clock_text(wall_ms, text);
    dot = MAX(1, dot / 2);
    draw_text(image, MAX(0, (image->width - 73 * dot) / 2), middle + 2 * dot, dot, text);
}
