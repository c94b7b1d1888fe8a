/* An element in the place of a decoder or an encoder, with its faults. */
#pragma once

#include <gst/gst.h>

typedef enum {
    FAKE_WORKS,  /* gives what fake_codec.give makes of each buffer */
    FAKE_SILENT, /* takes all and gives nothing */
    FAKE_HANGS,  /* does not even come back, nor end, until fake_codec.hanging is free */
    FAKE_FAILS
} FakeFault;

static struct {
    gint made;                       /* atomic: how many there were that got a buffer */
    FakeFault (*fault)(gint number); /* of the one with that number, from 1 on */
    GstBuffer *(*give)(GstBuffer *buffer);
    const char *caps;
    GMutex hanging;
} fake_codec;

typedef struct {
    GstElement parent;
    GstPad *source;
    gint number;
} FakeCodec;

typedef struct {
    GstElementClass parent;
} FakeCodecClass;

GType fake_codec_get_type(void);
G_DEFINE_TYPE(FakeCodec, fake_codec, GST_TYPE_ELEMENT)

static GstStaticPadTemplate fake_sink_template =
    GST_STATIC_PAD_TEMPLATE("sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);
static GstStaticPadTemplate fake_source_template =
    GST_STATIC_PAD_TEMPLATE("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);

static GstFlowReturn fake_chain(GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
    FakeCodec *self = (FakeCodec *)parent;
    GstBuffer *given;

    if (self->number == 0)
        self->number = g_atomic_int_add(&fake_codec.made, 1) + 1;
    switch (fake_codec.fault(self->number)) {
    case FAKE_WORKS:
        given = fake_codec.give(buffer);
        gst_buffer_unref(buffer);
        return gst_pad_push(self->source, given);
    case FAKE_HANGS:
        g_mutex_lock(&fake_codec.hanging);
        g_mutex_unlock(&fake_codec.hanging);
        break;
    case FAKE_FAILS:
        GST_ELEMENT_ERROR(self, STREAM, FAILED, ("broken"), (NULL));
        gst_buffer_unref(buffer);
        return GST_FLOW_ERROR;
    case FAKE_SILENT:
        break;
    }
    gst_buffer_unref(buffer);
    return GST_FLOW_OK;
}

static gboolean fake_event(GstPad *pad, GstObject *parent, GstEvent *event)
{
    FakeCodec *self = (FakeCodec *)parent;
    GstCaps *caps;

    if (GST_EVENT_TYPE(event) != GST_EVENT_CAPS)
        return gst_pad_event_default(pad, parent, event);
    gst_event_unref(event);
    caps = gst_caps_from_string(fake_codec.caps);
    gst_pad_push_event(self->source, gst_event_new_caps(caps));
    gst_caps_unref(caps);
    return TRUE;
}

static gboolean fake_query(GstPad *pad, GstObject *parent, GstQuery *query)
{
    GstPadTemplate *template = gst_pad_get_pad_template(pad);
    GstCaps *caps;

    if (GST_QUERY_TYPE(query) == GST_QUERY_ACCEPT_CAPS) {
        gst_query_set_accept_caps_result(query, TRUE);
    } else if (GST_QUERY_TYPE(query) == GST_QUERY_CAPS) {
        caps = gst_pad_template_get_caps(template);
        gst_query_set_caps_result(query, caps);
        gst_caps_unref(caps);
    } else {
        gst_object_unref(template);
        return gst_pad_query_default(pad, parent, query);
    }
    gst_object_unref(template);
    return TRUE;
}

static void fake_codec_init(FakeCodec *self)
{
    GstPad *sink = gst_pad_new_from_static_template(&fake_sink_template, "sink");

    self->source = gst_pad_new_from_static_template(&fake_source_template, "src");
    gst_pad_set_chain_function(sink, fake_chain);
    gst_pad_set_event_function(sink, fake_event);
    gst_pad_set_query_function(sink, fake_query);
    gst_element_add_pad(GST_ELEMENT(self), sink);
    gst_element_add_pad(GST_ELEMENT(self), self->source);
}

/* Properties that the codecs in whose place it is have. */
static void fake_set(GObject *object, guint id, const GValue *value, GParamSpec *spec)
{
}

static void fake_codec_class_init(FakeCodecClass *klass)
{
    GObjectClass *object_class = G_OBJECT_CLASS(klass);

    object_class->set_property = fake_set;
    g_object_class_install_property(
        object_class, 1, g_param_spec_int("max-threads", "", "", 0, 64, 0, G_PARAM_WRITABLE));
    g_object_class_install_property(
        object_class, 2,
        g_param_spec_boxed("extra-controls", "", "", GST_TYPE_STRUCTURE, G_PARAM_WRITABLE));
    gst_element_class_add_static_pad_template(&klass->parent, &fake_sink_template);
    gst_element_class_add_static_pad_template(&klass->parent, &fake_source_template);
    gst_element_class_set_static_metadata(&klass->parent, "Fake codec", "Codec", "For tests",
                                          "Tests");
}

static inline void fake_codec_register(const char *name)
{
    gst_element_register(NULL, name, GST_RANK_NONE, fake_codec_get_type());
}
