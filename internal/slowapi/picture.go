// Pictures: the content of media.
package slowapi

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

const tagPictures = 0x706963

// pictureOf is the picture a medium holds: the sample of its type, with the
// medium's own tag behind the end of the image, where no reader of images looks.
func pictureOf(m *medium) content {
	tag := fmt.Sprintf("%016x", uint64(drawFor(m.s.seed, tagPictures, m.i+places*int64(m.s.account)<<40)))
	sort := m.contentType()
	raw := append(sampleNamed("picture."+strings.TrimPrefix(sort, "image/")), tag...)
	return content{ReadSeeker: bytes.NewReader(raw), sort: sort, tag: `"` + tag + `"`, modified: time.Unix(m.created, 0)}
}
