// This file sends an export over HTTP, as JSON lines or XML.

package search

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/jsonspan"
	"understudy/kit/xmldoc"
)

// endTrailer is the HTTP trailer that says whether an export is complete.
const endTrailer = "Understudy-Export"

// writer writes the hits of an export in one format.
type writer interface {
	writeHit(h *query.SearchHit) error
	writeIdle() error // writes something without meaning that keeps the connection alive
	flush() error
	end() error
	markBroken(why string) // marks the output as incomplete, with the reason
}

// export streams every match. If the query is wrong, it returns an error and sends nothing. It writes a later error
// at the end of the output.
func (h *handler) export(w http.ResponseWriter, r *http.Request, c understudy.Caller, a query.SearchRequest, form string) error {
	if _, _, err := h.s.readExport(c, &a); err != nil {
		return err
	}
	head := w.Header()
	head.Set("Trailer", endTrailer)
	var out writer = &lineWriter{bufio.NewWriterSize(w, 32<<10)}
	head.Set("Content-Type", "application/x-ndjson")
	if form == formXML {
		out = &xmlWriter{out: w, doc: xmldoc.NewUpdate(w, xmldoc.Options{})}
		head.Set("Content-Type", "application/xml")
	}
	if r.Method == http.MethodHead {
		return nil
	}
	if err := h.recordAudit(r.Context(), c, a, understudy.AuditEntry{Action: understudy.ActionExport, What: "export begins"}); err != nil {
		head.Del("Trailer")
		return err
	}
	control := http.NewResponseController(w)
	begun, sent := false, h.s.o.Now()
	alive := func() error { // extends the deadline at which a client that reads nothing is disconnected
		begun = true
		return control.SetWriteDeadline(h.s.o.Now().Add(h.s.o.Limits.Silence))
	}
	n, err := h.s.Export(r.Context(), c, a, func(one *query.SearchHit) error {
		if err := alive(); err != nil {
			return err
		}
		if now := h.s.o.Now(); now.Sub(sent) > time.Second {
			sent = now
			if err := pushOutput(out, control); err != nil {
				return err
			}
		}
		return out.writeHit(one)
	}, func() error {
		if now := h.s.o.Now(); now.Sub(sent) > idleInterval {
			sent = now
			if err := alive(); err != nil {
				return err
			}
			if err := out.writeIdle(); err != nil {
				return err
			}
			return pushOutput(out, control)
		}
		return nil
	})
	if err == nil {
		err = h.recordAudit(r.Context(), c, a, understudy.AuditEntry{Action: understudy.ActionExport, What: "export", Rows: int(n)})
	}
	unsent := !begun
	_ = alive()
	switch {
	case err != nil && unsent: // nothing was sent, so the response can still have an error status
		head.Del("Trailer")
		return err
	case err != nil:
		if r.Context().Err() == nil {
			h.o.Logger.Warn("search: an export was interrupted", "records", n, "err", err)
		}
		out.markBroken("interrupted")
		_ = out.flush()
		head.Set(endTrailer, fmt.Sprintf("interrupted; %d records", n))
	default:
		if out.end() != nil {
			return nil // a write error means that the client has disconnected
		}
		said := fmt.Sprintf("complete; %d records", n)
		if why := h.s.exportNote(r.Context(), c, a); why != "" {
			said = "not " + said + "; " + why
		}
		head.Set(endTrailer, said)
	}
	return nil
}

// idleInterval is the time between two writes that keep the connection of an export without matches alive.
const idleInterval = 5 * time.Second

func pushOutput(out writer, control *http.ResponseController) error {
	if err := out.flush(); err != nil {
		return err
	}
	return control.Flush()
}

// lineWriter writes one JSON object per line.
type lineWriter struct{ out *bufio.Writer }

func (l *lineWriter) writeHit(h *query.SearchHit) error {
	one := *h
	one.Snippets = nil
	var line bytes.Buffer
	in := json.NewEncoder(&line)
	in.SetEscapeHTML(false)
	if err := in.Encode(one); err != nil {
		return fmt.Errorf("search: export: %w", err)
	}
	_, err := l.out.Write(line.Bytes())
	return err
}

func (l *lineWriter) writeIdle() error { return l.out.WriteByte('\n') }
func (l *lineWriter) flush() error     { return l.out.Flush() }
func (l *lineWriter) end() error       { return l.out.Flush() }

// markBroken writes a last line that is an error in place of a record.
func (l *lineWriter) markBroken(why string) {
	_, _ = fmt.Fprintf(l.out, "{\"error\":%q}\n", why) // an error is ignored, because the client may have disconnected
}

// xmlWriter writes an XML update document for a search engine such as Solr.
type xmlWriter struct {
	out interface{ Write([]byte) (int, error) }
	doc *xmldoc.Update
}

func (x *xmlWriter) writeHit(h *query.SearchHit) error {
	x.doc.BeginDoc()
	if h.ID != "" {
		x.doc.AddField("id", h.Source+"/"+h.Kind+"/"+h.ID)
	}
	x.doc.AddField("source", h.Source)
	x.doc.AddField("kind", h.Kind)
	if h.Clock != 0 {
		x.doc.AddField("at", h.Clock.Time().Format(time.RFC3339))
	}
	if root, err := jsonspan.Parse(h.Body); err == nil {
		x.writeValues(h.Body, root, "record")
	}
	return x.doc.Err()
}

// writeValues writes every value as a field named "record." and its dotted path. The prefix separates it from the hit's
// own fields. Each element of an array becomes a field of the same name.
func (x *xmlWriter) writeValues(body []byte, v jsonspan.Value, name string) {
	switch v.Kind {
	case jsonspan.Object:
		jsonspan.VisitMembers(body, v, func(raw []byte, v jsonspan.Value) bool {
			x.writeValues(body, v, name+"."+jsonspan.Name(raw))
			return true
		})
	case jsonspan.Array:
		jsonspan.VisitElements(body, v, func(v jsonspan.Value) bool { x.writeValues(body, v, name); return true })
	case jsonspan.Null:
	default:
		x.doc.AddField(name, jsonspan.Text(body, v))
	}
}

func (x *xmlWriter) writeIdle() error {
	if err := x.doc.Flush(); err != nil {
		return err
	}
	_, err := x.out.Write([]byte("\n"))
	return err
}

func (x *xmlWriter) flush() error { return x.doc.Flush() }
func (x *xmlWriter) end() error   { return x.doc.End() }

// markBroken writes the reason as a comment and leaves the document unclosed, so that no parser accepts it as complete.
func (x *xmlWriter) markBroken(why string) {
	_ = x.doc.Flush()
	_, _ = x.out.Write([]byte("<!-- " + why + " -->"))
}
