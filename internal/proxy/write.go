// Write: POST, PUT, PATCH and DELETE of a caller that may.

package proxy

import (
	"fmt"
	"io"
	"net/http"

	"understudy"
)

// write passes a write on, once. The body is read only when the caller may
// send it: a refusal costs no byte of it.
func (v *visit) write() error {
	if err := v.gate.Write(v.caller, v.target, v.r.Method); err != nil {
		return err
	}
	if v.r.ContentLength > v.maxBody {
		return &http.MaxBytesError{Limit: v.maxBody}
	}
	body, err := io.ReadAll(http.MaxBytesReader(v.w, v.r.Body, v.maxBody))
	if err != nil {
		return fmt.Errorf("proxy: %w: body: %w", understudy.ErrInvalid, err)
	}
	a, err := v.mirror.Write(v.r.Context(), understudy.Write{
		Target: v.target, Method: v.r.Method, Body: body, ContentType: v.r.Header.Get("Content-Type"),
	})
	if err != nil {
		return err
	}
	passed := *a
	passed.How, passed.Fwd = understudy.Cold, fwdMethod
	view, err := v.gate.View(v.caller, a.Page)
	if err != nil {
		return v.unseen(&passed, err)
	}
	v.answer(&passed, view)
	return nil
}

// unseen answers a write that was done, but whose answer the role may not see:
// a refusal would read as if it had not been done.
func (v *visit) unseen(a *understudy.Answer, why error) error {
	if a.Page.Status >= http.StatusMultipleChoices {
		return why
	}
	v.start(a)
	v.send(a.Page.Status, nil)
	return nil
}
