// Media: the pictures of messages.
package kinds

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// Media are the pictures that messages contain.
var Media = &world.Kind{
	Name: "media", Prefix: "ME", Tag: 'E',
	Generate: generateMedium, Shape: "media",
	Owner: Messages, SlotsPerOwner: MediaSlots,
	IsUsed: func(_ *world.World, s *world.Sequence, i int64) bool {
		return i%MediaSlots < int64(mediaCount(s.Siblings[Messages], i/MediaSlots))
	},
	Filters: world.TimeFilters("DateCreated", false, "created"),
	Writes:  world.Writes{CanDelete: true},
}

// MediaSlots is the number of indexes for media that each message has. Most of them are not used.
const MediaSlots = 16

// maxMedia is the maximum number of media in a message.
const maxMedia = 10

// mediaCount returns the number of media with which a message was sent.
func mediaCount(s *world.Sequence, message int64) int {
	if !s.IsCreatedByWrite(message) {
		if MediaMessage(s.Seed, message/20) == message {
			return 1
		}
		return 0
	}
	text, _ := s.WrittenValue(message, "MediaUrl")
	n, _ := strconv.Atoi(text)
	return min(max(n, 0), maxMedia)
}

// deletedMediaCount returns the number of media of a message that were deleted.
func deletedMediaCount(w *world.World, s *world.Sequence, message int64) int {
	gone := w.Sequence(w.KindNamed("media"), s.Account).DeletedIndexes
	first, _ := slices.BinarySearch(gone, message*MediaSlots)
	end, _ := slices.BinarySearch(gone, (message+1)*MediaSlots)
	return end - first
}

// pictureType returns the media type of a picture.
func pictureType(s *world.Sequence, i int64) string {
	d := s.Random(i)
	return [...]string{"image/png", "image/jpeg"}[d.IntBelow(2)]
}

func generateMedium(w *world.World, s *world.Sequence, i int64) table.Values {
	return table.Values{"content_type": pictureType(s, i), "created": s.CreationTime(i), "message": w.SID(s.Siblings[Messages], i/MediaSlots)}
}

// MediaOf returns the condition for the media of a message.
func MediaOf(_ *world.World, _ *world.Sequence, message int64) world.Condition {
	return world.Condition{Lo: message * MediaSlots, Hi: (message+1)*MediaSlots - 1}
}

const tagPictures = 0x706963

// PictureOf returns a picture: the sample picture of its type, followed by bytes that make it different from all
// others. Image decoders ignore bytes after the end of the image.
func PictureOf(s *world.Sequence, i int64) format.Content {
	tag := fmt.Sprintf("%016x", uint64(fake.RngFor(s.Seed, tagPictures, i+MediaSlots*int64(s.Account)<<40)))
	sort := pictureType(s, i)
	raw := append(sampleNamed("picture."+strings.TrimPrefix(sort, "image/")), tag...)
	return format.Content{ReadSeeker: bytes.NewReader(raw), Sort: sort, Tag: `"` + tag + `"`, Modified: time.Unix(s.CreationTime(i), 0)}
}
