// Media: what messages carry besides text.
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

// Media are what messages carry besides text.
var Media = &world.Kind{
	Name: "media", Prefix: "ME", Tag: 'E',
	Generate: drawMedium, Shape: "media",
	Owner: Messages, SlotsPerOwner: Places,
	IsUsed: func(_ *world.World, s *world.Sequence, i int64) bool {
		return i%Places < int64(sentMedia(s.Siblings[Messages], i/Places))
	},
	Filters: world.TimeFilters("DateCreated", false, "created"),
	Writes:  world.Writes{CanDelete: true},
}

// Places is how many indexes each message has for its media, most of them empty.
const Places = 16

// maxMedia is how many media a message may carry.
const maxMedia = 10

// sentMedia is with how many media a message was sent.
func sentMedia(s *world.Sequence, message int64) int {
	if !s.IsCreatedByWrite(message) {
		if MediaPlace(s.Seed, message/20) == message {
			return 1
		}
		return 0
	}
	text, _ := s.WrittenValue(message, "MediaUrl")
	n, _ := strconv.Atoi(text)
	return min(max(n, 0), maxMedia)
}

// deletedMedia returns how many media of a message were deleted.
func deletedMedia(w *world.World, s *world.Sequence, message int64) int {
	gone := w.Sequence(w.KindNamed("media"), s.Account).DeletedIndexes
	first, _ := slices.BinarySearch(gone, message*Places)
	end, _ := slices.BinarySearch(gone, (message+1)*Places)
	return end - first
}

// pictureType returns what sort of picture a medium is.
func pictureType(s *world.Sequence, i int64) string {
	d := s.Random(i)
	return [...]string{"image/png", "image/jpeg"}[d.IntBelow(2)]
}

func drawMedium(w *world.World, s *world.Sequence, i int64) table.Values {
	return table.Values{"content_type": pictureType(s, i), "created": s.CreationTime(i), "message": w.SID(s.Siblings[Messages], i/Places)}
}

// MediaOf are the places of a message.
func MediaOf(_ *world.World, _ *world.Sequence, message int64) world.Condition {
	return world.Condition{Lo: message * Places, Hi: (message+1)*Places - 1}
}

const tagPictures = 0x706963

// PictureOf is the picture a medium holds: the sample of its type, with the
// medium's own tag behind the end of the image, where no reader of images looks.
func PictureOf(s *world.Sequence, i int64) format.Content {
	tag := fmt.Sprintf("%016x", uint64(fake.RngFor(s.Seed, tagPictures, i+Places*int64(s.Account)<<40)))
	sort := pictureType(s, i)
	raw := append(sampleNamed("picture."+strings.TrimPrefix(sort, "image/")), tag...)
	return format.Content{ReadSeeker: bytes.NewReader(raw), Sort: sort, Tag: `"` + tag + `"`, Modified: time.Unix(s.CreationTime(i), 0)}
}
