// This file stores files in a bucket that are not contents, such as backups.

package contents

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/kit/retry"
)

const (
	partBytes = 16 << 20 // the memory of an upload; S3 takes 10,000 parts, so up to 156 GiB
	partTries = 4
	partTime  = 10 * time.Minute // the maximum time for sending a part, and for putting the parts together
)

// Archive is a folder of a bucket. It is safe for concurrent use.
type Archive struct {
	objects   *objects
	partBytes int
}

// OpenArchive returns the folder of a file s3://BUCKET/FOLDER/NAME, and the name of the file. It sends no request.
func OpenArchive(s S3, now func() time.Time) (a *Archive, name string, err error) {
	i := strings.LastIndexByte(s.URL, '/')
	s.URL, name = s.URL[:max(i, 0)], s.URL[i+1:]
	o, err := newObjects(s, now)
	if err != nil || name == "" {
		return nil, "", cmp.Or(err, errors.New("name a file in the bucket: s3://BUCKET/NAME"))
	}
	o.client.Transport.(*http.Transport).ResponseHeaderTimeout = partTime
	return &Archive{o, partBytes}, name, nil
}

// Put stores what write writes as a new object, and returns its size. The object appears when it is complete.
func (a *Archive) Put(ctx context.Context, name string, write func(io.Writer) error) (size int64, err error) {
	if err = a.objects.request(ctx, http.MethodHead, name, nil, nil); err == nil {
		return 0, fmt.Errorf("%s exists already; name a new file", name)
	}
	p := &parts{ctx: ctx, objects: a.objects, name: name}
	var begun answer
	if errors.Is(err, understudy.ErrNotFound) {
		begun, err = p.request(http.MethodPost, url.Values{"uploads": {""}}, nil)
	}
	if err != nil {
		return 0, err
	}
	p.id = begun.UploadID
	out := bufio.NewWriterSize(p, a.partBytes) // each of its writes is a part
	if err = write(out); err == nil {
		err = out.Flush()
	}
	if err == nil {
		list, _ := xml.Marshal(p) // numbers and texts cannot fail
		_, err = p.request(http.MethodPost, url.Values{"uploadId": {p.id}}, list)
	}
	if err != nil {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), bucketWait)
		defer cancel()
		return 0, errors.Join(err, a.objects.request(late, http.MethodDelete, name, url.Values{"uploadId": {p.id}}, nil))
	}
	return p.size, nil
}

// PutBytes stores an object and replaces one of the same name.
func (a *Archive) PutBytes(ctx context.Context, name string, data []byte) error {
	up := &upload{body: bytes.NewReader(data), size: int64(len(data)), sum: sha256.Sum256(data)}
	return a.objects.request(ctx, http.MethodPut, name, nil, up)
}

// parts are the parts of an object that is being sent.
type parts struct {
	XMLName xml.Name `xml:"CompleteMultipartUpload"`
	Part    []part

	ctx      context.Context
	objects  *objects
	name, id string
	size     int64
}

type part struct {
	PartNumber int
	ETag       string
}

// Write sends a part.
func (p *parts) Write(data []byte) (_ int, err error) {
	number := len(p.Part) + 1
	for try := range partTries {
		var a answer
		if a, err = p.request(http.MethodPut, url.Values{"partNumber": {strconv.Itoa(number)}, "uploadId": {p.id}}, data); err == nil {
			p.Part, p.size = append(p.Part, part{number, a.tag}), p.size+int64(len(data))
			return len(data), nil
		}
		err = cmp.Or(retry.Wait(p.ctx, retry.Backoff(time.Second/4, time.Minute, 2*try)), err)
	}
	return 0, err
}

// answer is the answer to a request of an upload.
type answer struct {
	XMLName       xml.Name
	UploadID      string `xml:"UploadId"`
	Code, Message string // of an error
	tag           string
}

// request sends a request of an upload. The bucket compares the data with its SHA-256. An answer with status 200 may be an error.
func (p *parts) request(method string, query url.Values, data []byte) (a answer, err error) {
	ctx, cancel := context.WithTimeout(p.ctx, partTime)
	defer cancel()
	up := &upload{body: bytes.NewReader(data), size: int64(len(data)), sum: sha256.Sum256(data)}
	res, err := p.objects.send(ctx, method, p.name, query, up)
	if err != nil {
		return a, err
	}
	defer res.Body.Close()
	if a.tag = res.Header.Get("Etag"); method == http.MethodPut {
		return a, nil
	}
	err = xml.NewDecoder(io.LimitReader(res.Body, 64<<10)).Decode(&a)
	if err == nil && a.XMLName.Local == "Error" {
		err = errors.New(a.Code + " " + understudy.Clip(a.Message))
	}
	return a, err
}

// Get opens a file. The caller must close it.
func (a *Archive) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	res, err := a.objects.send(ctx, http.MethodGet, name, nil, nil)
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// Remove deletes a file. A bucket with versions keeps its former versions.
func (a *Archive) Remove(ctx context.Context, name string) error {
	return a.objects.request(ctx, http.MethodDelete, name, nil, nil)
}

// List returns the names of the files that begin with a prefix, sorted.
func (a *Archive) List(ctx context.Context, prefix string) (names []string, err error) {
	all, err := a.objects.list(ctx, prefix)
	for _, one := range all {
		names = append(names, one.name)
	}
	return names, err
}
