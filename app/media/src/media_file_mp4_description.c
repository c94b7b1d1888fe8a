/* MP4: what the sample description of a track says of its codec. */
#include "media_file_mp4_private.h"

static void append_set(GByteArray *out, CamBytes *in)
{
    static const guint8 start_code[4] = {0, 0, 0, 1};
    guint16 length = cam_bytes_be16(in);
    CamBytes set = cam_bytes_part(in, length);

    if (in->over)
        return;
    g_byte_array_append(out, start_code, sizeof(start_code));
    g_byte_array_append(out, set.data, (guint)set.left);
}

static gboolean read_avcc(CamTrack *track, CamBytes in)
{
    cam_bytes_skip(&in, 4);
    track->length_size = (cam_bytes_u8(&in) & 3) + 1;
    for (int n = cam_bytes_u8(&in) & 31; n > 0 && !in.over; n--)
        append_set(track->parameter_sets, &in);
    for (int n = cam_bytes_u8(&in); n > 0 && !in.over; n--)
        append_set(track->parameter_sets, &in);
    return !in.over;
}

static gboolean read_hvcc(CamTrack *track, CamBytes in)
{
    int arrays;

    cam_bytes_skip(&in, 21);
    track->length_size = (cam_bytes_u8(&in) & 3) + 1;
    arrays = cam_bytes_u8(&in);
    for (; arrays > 0 && !in.over; arrays--) {
        cam_bytes_skip(&in, 1);
        for (int n = cam_bytes_be16(&in); n > 0 && !in.over; n--)
            append_set(track->parameter_sets, &in);
    }
    return !in.over;
}

/* The length of an MPEG-4 descriptor: seven bits a byte. */
static guint32 descriptor_length(CamBytes *in)
{
    guint32 length = 0;
    guint8 byte;
    int n = 0;

    do {
        byte = cam_bytes_u8(in);
        length = length << 7 | (byte & 127);
    } while (byte & 128 && ++n < 4);
    return length;
}

static void read_esds(CamTrack *track, CamBytes in)
{
    guint8 flags, object;

    cam_bytes_skip(&in, 4);
    if (cam_bytes_u8(&in) != 3)
        return;
    descriptor_length(&in);
    cam_bytes_skip(&in, 2);
    flags = cam_bytes_u8(&in);
    cam_bytes_skip(&in, flags & 128 ? 2 : 0);
    cam_bytes_skip(&in, flags & 64 ? cam_bytes_u8(&in) : 0);
    cam_bytes_skip(&in, flags & 32 ? 2 : 0);
    if (cam_bytes_u8(&in) != 4)
        return;
    descriptor_length(&in);
    object = cam_bytes_u8(&in);
    if (object == 0x6b || object == 0x69)
        track->codec = CAM_CODEC_MP3;
    cam_bytes_skip(&in, 12);
    if (object == 0x40 && cam_bytes_u8(&in) == 5) {
        guint32 length = descriptor_length(&in);
        CamBytes data = cam_bytes_part(&in, length);

        if (in.over || data.left < 2 || data.left > 64)
            return;
        track->codec = CAM_CODEC_AAC;
        g_byte_array_append(track->codec_data, data.data, (guint)data.left);
    }
}

static void read_video_entry(CamTrack *track, guint32 format, CamBytes in)
{
    gboolean h265 =
        format == CAM_MP4_BOX('h', 'v', 'c', '1') || format == CAM_MP4_BOX('h', 'e', 'v', '1');
    CamBytes config;

    cam_bytes_skip(&in, 24);
    track->width = cam_bytes_be16(&in);
    track->height = cam_bytes_be16(&in);
    cam_bytes_skip(&in, 50);
    config = cam_mp4_find_box(in, h265 ? CAM_MP4_BOX('h', 'v', 'c', 'C')
                                       : CAM_MP4_BOX('a', 'v', 'c', 'C'));
    if (config.over)
        return;
    if (h265 && read_hvcc(track, config))
        track->codec = CAM_CODEC_H265;
    else if (!h265 && read_avcc(track, config))
        track->codec = CAM_CODEC_H264;
}

static void read_audio_entry(CamTrack *track, CamBytes in)
{
    int version;
    CamBytes esds;

    cam_bytes_skip(&in, 8);
    version = cam_bytes_be16(&in);
    cam_bytes_skip(&in, 6);
    track->channels = cam_bytes_be16(&in);
    cam_bytes_skip(&in, 6);
    track->rate = (int)(cam_bytes_be32(&in) >> 16);
    cam_bytes_skip(&in, version == 1 ? 16 : 0);
    esds = cam_mp4_find_box(in, CAM_MP4_BOX('e', 's', 'd', 's'));
    if (!esds.over)
        read_esds(track, esds);
}

void cam_mp4_read_description(CamTrack *track, CamTrackKind kind, CamBytes stsd)
{
    CamBytes entry;
    guint32 format;

    cam_bytes_skip(&stsd, 8);
    if (!cam_mp4_next_box(&stsd, &format, &entry))
        return;
    if (kind == CAM_TRACK_VIDEO)
        read_video_entry(track, format, entry);
    else if (format == CAM_MP4_BOX('m', 'p', '4', 'a'))
        read_audio_entry(track, entry);
    else if (format == CAM_MP4_BOX('.', 'm', 'p', '3')) {
        read_audio_entry(track, entry);
        track->codec = CAM_CODEC_MP3;
    }
}
