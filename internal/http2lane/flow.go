// This file sends frames, as the windows of the client permit (RFC 9113, 5.2 and 6.9).

package http2lane

import (
	"encoding/binary"
	"slices"
)

// flow is the state of flow control. net/http believes that only it uses the window of the connection. Its own window is larger than
// the real one by what the lane has sent and the client has not returned.
type flow struct {
	answered   uint32     // the last stream that the lane has answered or is about to answer
	given      [64]uint32 // the last streams that net/http got
	connection int64      // the window of the connection
	debt       int64      // how much smaller the window is than net/http believes
	initial    int64      // the window of a new stream
	closed     bool       // whether the connection is closed
	held       []*data    // data without room in a window, at most one for each stream, oldest first
}

// data is data of one stream. The data of net/http always has room in the window of its stream.
type data struct {
	stream  uint32
	window  int64 // the window of the stream
	isOwn   bool  // whether the lane has made the data
	payload []byte
	isEnd   bool   // whether the payload ends the stream
	frames  []byte // frames of the stream behind the payload
	leave   func() // ends the counting of the payload
}

const (
	defaultWindow = 1<<16 - 1
	maxWindow     = 1<<31 - 1
)

// noteSettings notes the settings of the client. net/http checks them.
func (l *Lane) noteSettings(payload []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for ; len(payload) >= 6; payload = payload[6:] {
		value := int64(binary.BigEndian.Uint32(payload[2:]))
		if binary.BigEndian.Uint16(payload) != settingWindow || value > maxWindow {
			continue
		}
		for _, d := range l.flow.held {
			if d.isOwn {
				d.window += value - l.flow.initial
			}
		}
		l.flow.initial = value
	}
	l.release()
}

// noteWindow adds to the window of the connection. net/http gets what is left when the debt is paid.
func (l *Lane) noteWindow(f frame, payload []byte) error {
	n := int64(binary.BigEndian.Uint32(payload) & maxWindow)
	l.mu.Lock()
	paid := min(n, l.flow.debt)
	l.flow.debt -= paid
	l.flow.connection += n
	isTooLarge := l.flow.connection > maxWindow
	l.release()
	l.mu.Unlock()
	if isTooLarge {
		return l.fail(codeFlow, "the window of the connection is too large")
	}
	if n == 0 || n > paid {
		l.passed = appendWord(l.passed[:0], kindWindow, 0, uint32(n-paid))
	}
	l.skip(frameHead + f.length)
	return nil
}

// noteStream processes a frame of a stream that net/http does not know. It returns false for a frame that is wrong, which net/http refuses.
func (l *Lane) noteStream(f frame, payload []byte) bool {
	switch {
	case f.kind == kindPriority:
		return len(payload) == prioritySize
	case len(payload) != wordSize:
		return false
	case f.kind == kindReset:
		l.forget(f.stream)
		return true
	case f.kind != kindWindow:
		return false
	}
	n := int64(binary.BigEndian.Uint32(payload) & maxWindow)
	l.mu.Lock()
	defer l.mu.Unlock()
	if d := l.find(f.stream); d != nil {
		d.window = min(d.window+n, maxWindow)
	}
	l.release()
	return n > 0
}

// isHeld reports whether an answer of the lane waits on a stream.
func (l *Lane) isHeld(stream uint32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.find(stream)
	return d != nil && d.isOwn
}

// forget removes what is held of a stream that the client has reset.
func (l *Lane) forget(stream uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(stream)
}

func (l *Lane) remove(stream uint32) {
	l.flow.held = slices.DeleteFunc(l.flow.held, func(d *data) bool {
		if d.stream == stream {
			d.leave()
		}
		return d.stream == stream
	})
}

// find returns the data of a stream that is held, or nil.
func (l *Lane) find(stream uint32) *data {
	if i := slices.IndexFunc(l.flow.held, func(d *data) bool { return d.stream == stream }); i >= 0 {
		return l.flow.held[i]
	}
	return nil
}

// release collects the held data that has room now.
func (l *Lane) release() {
	l.flow.held = slices.DeleteFunc(l.flow.held, func(d *data) bool {
		if !l.appendData(d) {
			return false
		}
		l.out = append(l.out, d.frames...)
		d.leave()
		return true
	})
}

// appendData collects as much of a payload as has room. It returns false if some is left.
func (l *Lane) appendData(d *data) bool {
	for {
		n := int(max(0, min(int64(len(d.payload)), l.flow.connection, d.window, minFrame)))
		if n == 0 && len(d.payload) > 0 {
			return false
		}
		flags := byte(0)
		if d.isEnd && n == len(d.payload) {
			flags = flagEndStream
		}
		if n > 0 || d.isEnd {
			l.out = append(appendFrame(l.out, n, kindData, flags, d.stream), d.payload[:n]...)
		}
		d.payload, d.window, l.flow.connection = d.payload[n:], d.window-int64(n), l.flow.connection-int64(n)
		if d.isOwn {
			l.flow.debt += int64(n)
		}
		if len(d.payload) == 0 {
			return true
		}
	}
}

// sendData collects data, and holds what has no room. It copies what it holds.
func (l *Lane) sendData(d *data) {
	before := l.find(d.stream)
	if l.flow.closed || before == nil && l.appendData(d) {
		return
	}
	leave := l.options.Count(len(d.payload), l.cut)
	if before == nil {
		d.payload, d.leave = slices.Clone(d.payload), leave
		l.flow.held = append(l.flow.held, d)
		return
	}
	first := before.leave
	before.payload, before.isEnd = append(before.payload, d.payload...), d.isEnd
	before.leave = func() { first(); leave() }
}

// Close ends the counting of what is held. Call it when the connection is closed.
func (l *Lane) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flow.closed = true
	for _, d := range l.flow.held {
		d.leave()
	}
	l.flow.held = nil
}

// cut closes the connection without waiting for the client.
func (l *Lane) cut() { _ = l.tcp.Close() }

// Write sends the frames of net/http.
func (l *Lane) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := p
	if len(l.server) > 0 {
		l.server = append(l.server, p...)
		all = l.server
	}
	for len(all) >= frameHead {
		f := parseFrame(all)
		end := frameHead + f.length
		if len(all) < end {
			break
		}
		l.collect(f, all[:end])
		all = all[end:]
	}
	l.server = append(l.server[:0], all...)
	if err := l.send(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// collect collects a frame of net/http.
func (l *Lane) collect(f frame, whole []byte) {
	switch f.kind {
	case kindSettings:
		l.started = true
	case kindGoAway:
		whole = l.noteEnd(whole)
	case kindReset:
		l.remove(f.stream)
	case kindData:
		l.sendData(&data{stream: f.stream, window: maxWindow, payload: whole[frameHead:], isEnd: f.flags&flagEndStream != 0})
		return
	case kindHeaders, kindContinuation:
		if before := l.find(f.stream); before != nil {
			before.frames = append(before.frames, whole...)
			return
		}
	}
	l.out = append(l.out, whole...)
}

// flush sends what has been collected.
func (l *Lane) flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.send()
}

func (l *Lane) send() error {
	if len(l.out) == 0 {
		return nil
	}
	if now := l.options.Now(); now.Sub(l.extended) >= deadlineInterval {
		l.extended = now
		_ = l.tcp.SetWriteDeadline(now.Add(l.options.WriteTime))
	}
	defer l.options.Count(len(l.out), l.cut)()
	_, err := l.stream.Write(l.out)
	if l.out = l.out[:0]; cap(l.out) > maxOut {
		l.out = nil
	}
	return err
}
