package claims

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"understudy/bench/parts/transport"
	"understudy/bench/rig"
)

var expectContinue = claim{
	name: "expect-continue", systems: "13",
	says:    "curl waits a second for 100 Continue before it sends a body of more than 1 KB",
	figure:  "more than 1,000 ms; 8 ms after the repair",
	measure: measureExpect,
}

// measureExpect lets curl post bodies to a server that says nothing before it has the body, and to one of net/http, which
// says 100 when its handler reads.
func measureExpect(ctx context.Context, r *rig.Run) (f finding, err error) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return finding{}, err
	}
	go serveSilently(silent)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return finding{}, errors.Join(err, silent.Close())
	}
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
	})}
	go func() { _ = s.Serve(l) }()
	defer func() { err = errors.Join(err, silent.Close(), s.Close()) }()
	f = finding{title: "Milliseconds of a POST by curl", bars: []rig.Bar{article("article: 2 KB", 1000)}, table: [][]string{{"POST by curl", "ms", "quartiles"}}}
	var medians []float64
	for _, c := range []struct {
		name, address string
		size          int
		expect        string
	}{
		{"2 KB, silent server", silent.Addr().String(), 2 << 10, ""},
		{"2 KB and the header, silent server", silent.Addr().String(), 2 << 10, "100-continue"},
		{"2 MiB, silent server", silent.Addr().String(), 2 << 20, ""},
		{"2 MiB, net/http", l.Addr().String(), 2 << 20, ""},
	} {
		file := filepath.Join(r.Dir, "body")
		if err := os.WriteFile(file, make([]byte, c.size), 0o600); err != nil {
			return finding{}, err
		}
		var ms []float64
		for range r.Times(7, 1) {
			args := []string{"-sS", "-o", "/dev/null", "-w", "%{time_total}", "--data-binary", "@" + file, "http://" + c.address}
			if c.expect != "" {
				args = append(args, "-H", "Expect: "+c.expect)
			}
			out, err := exec.CommandContext(ctx, "curl", args...).Output()
			if err != nil {
				return finding{}, fmt.Errorf("curl: %w", err)
			}
			seconds, err := strconv.ParseFloat(string(out), 64)
			if err != nil {
				return finding{}, fmt.Errorf("curl: %w", err)
			}
			ms = append(ms, 1000*seconds)
		}
		b := bar(c.name, ms)
		medians, f.bars = append(medians, b.Value), append(f.bars, b)
		f.table = append(f.table, []string{c.name, rig.Figure(b.Value), rig.Figure(b.Low) + " to " + rig.Figure(b.High)})
	}
	f.ours = fmt.Sprintf("2 KB %s ms, 2 MiB %s ms, and %s ms at a server that answers 100", rig.Figure(medians[0]), rig.Figure(medians[2]), rig.Figure(medians[3]))
	f.verdict = judge(medians[0] > 900, heldThen)
	f.text = "curl adds the header above 1 MiB since its version 7.69 (2020), not above 1 KB. It still waits a second for an answer. Servers of Go " +
		"send 100 when the handler begins to read. Understudy accepts or refuses a write before its body is sent."
	return f, nil
}

// serveSilently answers each request when its body is there, and never says 100.
func serveSilently(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			req, err := http.ReadRequest(bufio.NewReader(c))
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		}()
	}
}

var pipelining = claim{
	name: "pipelining", systems: "32",
	says:    "Multiplexing of HTTP/2 is pipelining done worse; HPACK only hides large headers",
	figure:  "no figure",
	measure: measurePipelining,
}

// measurePipelining gives 20 reads to each server over each transport.
func measurePipelining(ctx context.Context, r *rig.Run) (finding, error) {
	const reads = 20
	names, ms, bytes, err := transport.MeasureTimes(ctx, r, r.Size(reads, 4), r.Times(5, 1))
	if err != nil {
		return finding{}, err
	}
	f := finding{title: "Milliseconds for 20 reads with 50 ms of work each, 50 ms away",
		table: [][]string{{"20 reads over one connection", "ms, no work", "ms, 50 ms of work", "bytes a request"}}}
	medians := map[string][2]float64{}
	sent := map[string]int64{}
	for i, name := range names {
		m := [2]float64{rig.Median(ms[i][0]), rig.Median(ms[i][1])}
		medians[name], sent[name] = m, bytes[i]
		f.bars = append(f.bars, bar(name, ms[i][1]))
		f.table = append(f.table, []string{name, rig.Figure(m[0]), rig.Figure(m[1]), fmt.Sprint(bytes[i])})
	}
	plain, ours, two := medians["pipelined, net/http"], medians["pipelined, our server"], medians["HTTP/2, net/http"]
	f.ours = fmt.Sprintf("With work: pipelined %s ms, by our server %s, HTTP/2 %s. Without work: %s, %s, %s", rig.Figure(plain[1]), rig.Figure(ours[1]),
		rig.Figure(two[1]), rig.Figure(plain[0]), rig.Figure(ours[0]), rig.Figure(two[0]))
	f.verdict = judge(plain[1] < 1.2*two[1] && plain[0] < 1.2*two[0], wrong)
	f.text = fmt.Sprintf("Pipelining saves the way there and back as well as HTTP/2 does. But servers of Go work on one request of a connection at a "+
		"time, and answers must keep their order: one slow answer delays all that follow. Our server starts pipelined reads together, which removes the "+
		"first limit. A request of HTTP/2 takes %d bytes in place of %d.", sent["HTTP/2, net/http"], sent["pipelined, net/http"])
	return f, nil
}
