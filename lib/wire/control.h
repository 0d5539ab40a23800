/* Control messages: a document in one msgpack frame of a HPS_MSG_CONTROL.
 *
 * What the documents say is the business of those who send them (lib/coord); here they are only
 * packed, and unpacked from bytes that may be anything.
 */
#ifndef HPS_WIRE_CONTROL_H
#define HPS_WIRE_CONTROL_H

#include "doc/doc.h"
#include "wire/msg.h"

/* Bytes of the document's frame; its depth and strings are bounded by lib/doc. */
enum { HPS_CONTROL_MAX_BYTES = 1 << 24 };

/* Make m a control message that holds the object d (borrowed) in its first frame; the rest of the
 * header is zero. On success the caller releases m or hands it on; HPS_MEMORY leaves m empty, also
 * for a document beyond HPS_CONTROL_MAX_BYTES. Raw frames may be appended after it. */
enum hps_status hps_control_pack(const struct hps_doc *d, struct hps_msg *m, struct hps_err *err);

/* The object in m's first frame, for the caller to free. HPS_NET when m is no control message, its
 * frame is missing, too large, or not one msgpack object. m is left as it is; frames after the
 * first are not looked at: the document has to say what they are, and the caller to check it. */
enum hps_status hps_control_unpack(const struct hps_msg *m, struct hps_doc **out,
				   struct hps_err *err);

#endif
