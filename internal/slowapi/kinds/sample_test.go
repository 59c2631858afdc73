// Tests of sounds and pictures: they can be played and seen.
package kinds_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	_ "image/jpeg"
	_ "image/png"
	"net/http"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/slowapi"
	"understudy/internal/slowapi/slowapitest"
)

// What the samples of MP3 are made of (ISO/IEC 11172-3, 2.4).
const (
	maxAudio      = 30 // seconds of a recording that can be heard
	mp3Frame      = 144
	mp3Samples    = 1152 // of a frame
	mp3Rate       = 32000
	mp3GlobalGain = 200 // a quarter of the full amplitude
	mp3SideMono   = 17
	mp3SideStereo = 32
)

func TestWAV(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 400})
	for _, c := range []struct {
		recorded, heard int
		query           string
	}{{1, 1, ""}, {2, 2, ""}, {1, 2, "?RequestedChannels=2"}, {2, 1, "?RequestedChannels=1"}, {2, 2, "?RequestedChannels=7"}} {
		path, seconds := r.CompletedRecording(c.recorded)
		resp, body := r.Fetch("GET", path+".wav"+c.query)
		_, plain := r.Fetch("GET", path+c.query)
		checktest.MustEqual(t, resp.StatusCode, 200, "%s: resp.StatusCode", path)
		checktest.MustEqual(t, resp.Header.Get("Content-Type"), "audio/x-wav", `%s: resp.Header.Get("Content-Type")`,
			path)
		checktest.MustTrue(t, bytes.Equal(plain, body), "%s: plain is %q, want %q", path, plain, body)
		le := binary.LittleEndian
		head := fmt.Sprintf("%s %d %s%s %d %d %d %d %d %d %s %d", body[:4], le.Uint32(body[4:]), body[8:12], body[12:16], le.Uint16(body[20:]),
			le.Uint16(body[22:]),
			le.Uint32(body[24:]), le.Uint32(body[28:]), le.Uint16(body[32:]), le.Uint16(body[34:]), body[36:40], le.Uint32(body[40:]))
		data := min(seconds, maxAudio) * 16000 * c.heard
		want := fmt.Sprintf("RIFF %d WAVEfmt  1 %d 8000 %d %d 16 data %d", data+36, c.heard, 16000*c.heard, 2*c.heard, data)
		if head != want || len(body) != 44+data {
			t.Errorf("%s\nwant %s\n%d bytes", head, want, len(body))
		}
		loud := int16(0)
		for i := 44; i+1 < len(body); i += 2 {
			loud = max(loud, int16(le.Uint16(body[i:])))
		}
		if loud < 5000 {
			t.Errorf("the loudest sample is %d", loud)
		}
	}
}

// TestMP3 reads every frame back: header, side information, spectrum.
func TestMP3(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 400})
	for channels, mode := range map[int]byte{1: 0xC4, 2: 0x04} {
		path, seconds := r.CompletedRecording(channels)
		resp, body := r.Fetch("GET", path+".mp3")
		checktest.MustEqual(t, resp.StatusCode, 200, "%s: resp.StatusCode", path)
		checktest.MustEqual(t, resp.Header.Get("Content-Type"), "audio/mpeg", `%s: resp.Header.Get("Content-Type")`,
			path)
		checktest.MustEqual(t, len(body)%mp3Frame, 0, "%s: len(body)%%mp3Frame", path)
		if lasts := float64(len(body)/mp3Frame) * mp3Samples / mp3Rate; lasts < float64(min(seconds, maxAudio)) ||
			lasts > float64(min(seconds, maxAudio))+0.04 {
			t.Errorf("%v seconds are heard of %d", lasts, seconds)
		}
		lines := map[int]bool{}
		for at := 0; at < len(body); at += mp3Frame {
			frame := body[at : at+mp3Frame]
			if !bytes.Equal(frame[:4], []byte{0xFF, 0xFB, 0x18, mode}) {
				t.Fatalf("frame at %d begins % x", at, frame[:4])
			}
			for _, line := range readFrame(t, frame, channels) {
				lines[line] = true
			}
		}
		if len(lines) < 3 {
			t.Errorf("a melody of %d notes", len(lines))
		}
	}
}

// readFrame decodes one frame as ISO/IEC 11172-3 says, as far as it is used
// here, and gives the spectral line of each granule and channel.
func readFrame(t *testing.T, frame []byte, channels int) (lines []int) {
	t.Helper()
	at := 32
	take := func(n int) (value int) {
		for range n {
			value = value<<1 | int(frame[at/8]>>(7-at%8)&1)
			at++
		}
		return value
	}
	if take(9) != 0 {
		t.Fatal("it refers to a frame before it")
	}
	take(map[int]int{1: 5 + 4, 2: 3 + 8}[channels])
	var lengths, pairs []int
	for range 2 * channels {
		lengths, pairs = append(lengths, take(12)), append(pairs, take(9))
		if gain, rest := take(8), take(5); gain != mp3GlobalGain || rest != 0 {
			t.Fatalf("gain %d, scale factors or blocks %d", gain, rest)
		}
		if tables := take(15); tables != 1<<10|1<<5|1 || take(10) != 0 {
			t.Fatalf("tables %b", tables)
		}
	}
	if want := 32 + 8*map[int]int{1: mp3SideMono, 2: mp3SideStereo}[channels]; at != want {
		t.Fatalf("the side information ends at bit %d, not %d", at, want)
	}
	for i, length := range lengths {
		begin, line := at, -1
		for pair := range pairs[i] {
			x, y := 0, 0
			switch { // Huffman table 1
			case take(1) == 1:
			case take(1) == 1:
				x = 1
			case take(1) == 1:
				y = 1
			default:
				x, y = 1, 1
			}
			for range x + y {
				take(1) // the sign
			}
			if x == 1 {
				line = 2 * pair
			}
			if y == 1 {
				line = 2*pair + 1
			}
		}
		if at-begin != length || line < 0 {
			t.Fatalf("granule %d takes %d bits, not %d; line %d", i, at-begin, length, line)
		}
		lines = append(lines, line)
	}
	if at > 8*mp3Frame {
		t.Fatal("it does not fit into its frame")
	}
	return lines
}

func TestPictures(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 400})
	seen := map[string]bool{}
	_, paths := r.WriteMessage(8)
	for _, path := range paths {
		sort := r.One(path + ".json")["content_type"].(string)
		resp, body := r.Fetch("GET", path)
		to := resp.Header.Get("Location")
		checktest.MustEqual(t, resp.StatusCode, 307, "GET %s: resp.StatusCode", path)
		checktest.MustEqual(t, len(body), 0, "GET %s: len(body)", path)
		checktest.MustTrue(t, strings.HasPrefix(to, r.Web.URL+"/-/cdn/"), "GET %s: to is %q", path, to)
		if head, _ := r.Fetch("HEAD", path); head.StatusCode != 307 {
			t.Errorf("HEAD %s: %d", path, head.StatusCode)
		}
		resp, err := http.Get(to) // without credentials
		if err != nil {
			t.Fatal(err)
		}
		var whole bytes.Buffer
		_, _ = whole.ReadFrom(resp.Body)
		resp.Body.Close()
		drawn, format, err := image.Decode(bytes.NewReader(whole.Bytes()))
		checktest.MustNoError(t, err, "%s is %s", sort, format)
		checktest.MustEqual(t, "image/"+format, sort, `%s is %s: "image/"+format`, sort, format)
		checktest.MustEqual(t, resp.Header.Get("Content-Type"), sort, `%s is %s: resp.Header.Get("Content-Type")`,
			sort, format)
		checktest.MustEqual(t, resp.StatusCode, 200, "%s is %s: resp.StatusCode", sort, format)
		size := drawn.Bounds().Size()
		checktest.True(t, size.X >= 200, "it measures: size.X is %v, want >= 200", size.X)
		checktest.True(t, size.X <= 600, "it measures: size.X is %v, want <= 600", size.X)
		checktest.True(t, size.Y >= 150, "it measures: size.Y is %v, want >= 150", size.Y)
		checktest.True(t, size.Y <= 500, "it measures: size.Y is %v, want <= 500", size.Y)
		seen[whole.String()] = true
		part, body := r.Fetch("GET", strings.TrimPrefix(to, r.Web.URL), "Range", "bytes=10-19", "If-Range", resp.Header.Get("ETag"))
		if part.StatusCode != 206 || !bytes.Equal(body, whole.Bytes()[10:20]) {
			t.Errorf("a part: %d", part.StatusCode)
		}
		again, body := r.Fetch("GET", strings.TrimPrefix(to, r.Web.URL))
		if again.StatusCode != 200 || !bytes.Equal(body, whole.Bytes()) {
			t.Error("the same medium is not the same bytes")
		}
	}
	if len(seen) != len(paths) {
		t.Errorf("%d different pictures of %d", len(seen), len(paths))
	}
	if resp, err := http.Get(r.Web.URL + paths[0]); err != nil || resp.StatusCode != 401 {
		t.Errorf("without credentials: %v", resp.StatusCode)
	}
}
