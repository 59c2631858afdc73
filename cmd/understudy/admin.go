// Admin: the commands of a running server, asked over its viewer's port.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"understudy/internal/datadir"
)

// admin is a running server that a command asks.
type admin struct{ datadir.Running }

// ask sends one request to the running server and reads its answer. What the
// server says was the caller's mistake is a usageError.
func (r admin) ask(ctx context.Context, method, path string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, r.Viewer+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+r.Token)
	req.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // no proxy: it is this machine
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("the server with viewer %s (process %d) does not answer: %w", r.Viewer, r.PID, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	var failure struct {
		Error string `json:"error"`
	}
	if err != nil || json.Unmarshal(data, &failure) != nil {
		return fmt.Errorf("the server with viewer %s answered %s and nothing that can be read", r.Viewer, resp.Status)
	}
	switch {
	case resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusNotFound:
		return usageError{errors.New(failure.Error)}
	case resp.StatusCode/100 != 2:
		return fmt.Errorf("the server with viewer %s answered %s: %s", r.Viewer, resp.Status, failure.Error)
	}
	return json.Unmarshal(data, into)
}
