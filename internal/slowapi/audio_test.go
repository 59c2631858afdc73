// Tests of sounds: they can be played, in any part, and faults break them.
package slowapi

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"understudy/internal/slowapi/kinds"
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

// completed is the path of a recording that can be heard, with so many channels.
func (r running) completed(channels int) (path string, seconds int) {
	r.Helper()
	for _, one := range r.walk(root+"/Recordings.json?PageSize=1000", nil) {
		if one["status"] == "completed" && one["channels"] == float64(channels) {
			seconds, _ = strconv.Atoi(one["duration"].(string))
			return strings.TrimSuffix(one["uri"].(string), ".json"), seconds
		}
	}
	r.Fatal("nothing can be heard")
	return "", 0
}

// fetch is a request with credentials and more headers, two for each.
func (r running) fetch(method, target string, headers ...string) (*http.Response, []byte) {
	r.Helper()
	req, _ := http.NewRequest(method, r.web.URL+target, nil)
	req.SetBasicAuth(mainSID, "slowapitoken")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req) // follows nothing
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		r.Fatalf("%s %s: %v", method, target, err)
	}
	return resp, body
}

func TestWAV(t *testing.T) {
	r := start(t, Options{Records: 400})
	for _, c := range []struct {
		recorded, heard int
		query           string
	}{{1, 1, ""}, {2, 2, ""}, {1, 2, "?RequestedChannels=2"}, {2, 1, "?RequestedChannels=1"}, {2, 2, "?RequestedChannels=7"}} {
		path, seconds := r.completed(c.recorded)
		resp, body := r.fetch("GET", path+".wav"+c.query)
		_, plain := r.fetch("GET", path+c.query)
		if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "audio/x-wav" || !bytes.Equal(plain, body) {
			t.Fatalf("%s: %d %s", path, resp.StatusCode, resp.Header)
		}
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
	r := start(t, Options{Records: 400})
	for channels, mode := range map[int]byte{1: 0xC4, 2: 0x04} {
		path, seconds := r.completed(channels)
		resp, body := r.fetch("GET", path+".mp3")
		if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "audio/mpeg" || len(body)%mp3Frame != 0 {
			t.Fatalf("%s: %d %s, %d bytes", path, resp.StatusCode, resp.Header, len(body))
		}
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

func TestContentInParts(t *testing.T) {
	r := start(t, Options{Records: 400})
	path, _ := r.completed(2)
	for _, ending := range []string{".wav", ".mp3"} {
		resp, whole := r.fetch("GET", path+ending)
		tag, changed := resp.Header.Get("ETag"), resp.Header.Get("Last-Modified")
		if tag == "" || changed == "" || resp.Header.Get("Accept-Ranges") != "bytes" {
			t.Fatalf("%s: %v", ending, resp.Header)
		}
		n := len(whole)
		for _, c := range []struct {
			headers []string
			status  int
			want    []byte
		}{
			{[]string{"Range", "bytes=0-0"}, 206, whole[:1]},
			{[]string{"Range", "bytes=40-50"}, 206, whole[40:51]},
			{[]string{"Range", "bytes=43-"}, 206, whole[43:]},
			{[]string{"Range", "bytes=-77"}, 206, whole[n-77:]},
			{[]string{"Range", fmt.Sprintf("bytes=%d-", n)}, 416, nil},
			{[]string{"Range", "bytes=5-10", "If-Range", tag}, 206, whole[5:11]},
			{[]string{"Range", "bytes=5-10", "If-Range", changed}, 206, whole[5:11]},
			{[]string{"Range", "bytes=5-10", "If-Range", `"other"`}, 200, whole},
			{[]string{"Range", "lines=5-10"}, 416, nil},
			{[]string{"If-None-Match", tag}, 304, nil},
			{[]string{"If-Modified-Since", changed}, 304, nil},
			{[]string{"Accept-Encoding", "gzip"}, 200, whole},
		} {
			resp, got := r.fetch("GET", path+ending, c.headers...)
			if resp.StatusCode != c.status || c.status < 300 && !bytes.Equal(got, c.want) || resp.Header.Get("Content-Encoding") != "" {
				t.Errorf("%s %v: %d, %d bytes, want %d with %d", ending, c.headers, resp.StatusCode, len(got), c.status, len(c.want))
			}
		}
		head, body := r.fetch("HEAD", path+ending)
		if head.StatusCode != 200 || head.ContentLength != int64(n) || len(body) != 0 || head.Header.Get("ETag") != tag {
			t.Errorf("HEAD %s: %d %v", ending, head.StatusCode, head.Header)
		}
	}
}

func TestContentNeedsCredentialsAndTheRightPath(t *testing.T) {
	r := start(t, Options{Records: 400})
	path, _ := r.completed(2)
	for _, ending := range []string{"", ".wav", ".mp3"} {
		resp, err := http.Get(r.web.URL + path + ending)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 401 {
			t.Errorf("%s without credentials: %d", ending, resp.StatusCode)
		}
	}
	sid := path[len(path)-34:]
	call := r.one(path + ".json")["call_sid"].(string)
	_, whole := r.fetch("GET", path+".mp3")
	for target, want := range map[string]int{
		root + "/Calls/" + call + "/Recordings/" + sid + ".mp3": 200,
		root + "/Calls/" + call + "/Recordings/" + sid:          200,
		path + ".ogg": 404, path + ".": 404, path + ".mp3.mp3": 404, path + "/.mp3": 404, root + "/Recordings/.wav": 404,
		root + "/Recordings": 404, root + "/Calls/" + call: 404, root + "/Calls/" + call + ".mp3": 404,
		root + "/Recordings/REffffffffffffffffffffffffffffffff.wav": 404,
	} {
		resp, body := r.fetch("GET", target)
		if resp.StatusCode != want || want == 200 && strings.HasSuffix(target, ".mp3") && !bytes.Equal(body, whole) {
			t.Errorf("GET %s: %d, want %d", target, resp.StatusCode, want)
		}
	}
	if resp, _ := r.fetch("DELETE", path+".mp3"); resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("DELETE: %d", resp.StatusCode)
	}
}

func TestFaultsBreakContent(t *testing.T) {
	r := start(t, Options{Records: 400})
	path, _ := r.completed(1)
	_, whole := r.fetch("GET", path+".wav")
	ask := func(rule string, headers ...string) (*http.Response, []byte, error) {
		t.Helper()
		r.control("/-/faults", `{"rules":[{"match":".wav",`+rule+`}]}`, 200)
		req, _ := http.NewRequest("GET", r.web.URL+path+".wav", nil)
		req.SetBasicAuth(mainSID, "slowapitoken")
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			return nil, nil, err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return resp, body, err
	}
	if _, _, err := ask(`"reset":true`); err == nil {
		t.Error("reset: an answer")
	}
	resp, body, err := ask(`"truncate":1000`)
	if err == nil || !bytes.Equal(body, whole[:1000]) || resp.ContentLength != int64(len(whole)) {
		t.Errorf("truncate: %d bytes, %v", len(body), err)
	}
	resp, body, err = ask(`"truncate":10`, "Range", "bytes=100-199")
	if err == nil || !bytes.Equal(body, whole[100:110]) || resp.StatusCode != 206 || resp.ContentLength != 100 {
		t.Errorf("truncate a part: %d, %d bytes, %v", resp.StatusCode, len(body), err)
	}
	resp, body, err = ask(`"status":503,"retry_after":7`)
	if err != nil || resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "7" || !strings.Contains(string(body), `"code":20503`) {
		t.Errorf("status: %v %s", err, body)
	}
	resp, body, err = ask(`"delay_ms":1`)
	if err != nil || resp.Header.Get("Content-Type") != "audio/x-wav" || !bytes.Equal(body, whole) {
		t.Errorf("delay: %v, %d bytes", err, len(body))
	}
	if head, _ := r.fetch("HEAD", path+".wav"); head.ContentLength != int64(len(whole)) {
		t.Errorf("HEAD under a delay: %d bytes, not %d", head.ContentLength, len(whole))
	}
	if _, body, err = ask(`"body":"<html>","content_type":"text/html"`); err != nil || string(body) != "<html>" {
		t.Errorf("body: %v %s", err, body)
	}
}

// FuzzContentRange reads any part of a sound: it is that part of the whole.
func FuzzContentRange(f *testing.F) {
	s, err := New(Options{Records: 400})
	if err != nil {
		f.Fatal(err)
	}
	defer s.Close()
	path := ""
	w := s.twilio.world
	for i := range w.Below[0][kinds.Recordings].Base {
		s := w.Below[0][kinds.Recordings]
		if s.Kind.Draw(w, s, i)["status"] == "completed" {
			path = root + "/Recordings/" + string(w.AppendSID(nil, s, i))
		}
	}
	wholes := map[bool][]byte{true: ask(s, path+".mp3").Body.Bytes(), false: ask(s, path+".wav").Body.Bytes()}
	for _, seed := range []string{"bytes=0-0", "bytes=-5", "bytes=40-", "bytes=0-1,5-6", "bytes=9-3", "bytes=", "items=0-1",
		"bytes=0-99999999999999999999", "bytes = 1 - 2"} {
		f.Add(seed, "", true)
		f.Add(seed, `"x"`, false)
	}
	f.Fuzz(func(t *testing.T, asked, ifRange string, mp3 bool) {
		target := path + map[bool]string{true: ".mp3", false: ".wav"}[mp3]
		r := httptest.NewRequest("GET", target, nil)
		r.SetBasicAuth(mainSID, "slowapitoken")
		r.Header.Set("Range", asked)
		r.Header.Set("If-Range", ifRange)
		got := httptest.NewRecorder()
		s.ServeHTTP(got, r)
		var from, to, size int
		switch whole := wholes[mp3]; got.Code {
		case 200:
			if !bytes.Equal(got.Body.Bytes(), whole) {
				t.Fatal("the whole is not the whole")
			}
		case 206:
			if _, err := fmt.Sscanf(got.Header().Get("Content-Range"), "bytes %d-%d/%d", &from, &to, &size); err != nil {
				return // several parts
			}
			if size != len(whole) || !bytes.Equal(got.Body.Bytes(), whole[from:to+1]) {
				t.Fatalf("%d to %d is not that part", from, to)
			}
		case 416:
		default:
			t.Fatalf("%d", got.Code)
		}
	})
}
