// This file sends the requests to an S3-compatible store.

package contents

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"understudy"
	"understudy/internal/store/db"
	"understudy/request"
)

// S3 names a bucket and how to reach it.
type S3 struct {
	URL      string // s3://BUCKET/PREFIX
	Endpoint string // the URL of the store; "" means Amazon's of the region
	Region   string // "" means us-east-1
	Key      string // the id of the access key
	Secret   understudy.Secret
	// Permitted refuses addresses (see net.Dialer.Control); nil permits all.
	Permitted func(network, address string, c syscall.RawConn) error
}

const bucketWait = 5 * time.Second // the maximum time of a request without a body, and of the wait for the answer to any other

// ParseS3 returns the bucket and the prefix of a URL such as s3://bucket/prefix. The prefix ends with "/" or is empty.
func ParseS3(from string) (bucket, prefix string, err error) {
	u, err := url.Parse(from)
	if err != nil || u.Scheme != "s3" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", "", errors.New("a bucket is written s3://BUCKET or s3://BUCKET/PREFIX")
	}
	if prefix = strings.Trim(u.Path, "/"); prefix != "" {
		prefix += "/"
	}
	return u.Host, prefix, nil
}

// IsS3 reports whether a place is in a bucket.
func IsS3(place string) bool { return strings.HasPrefix(place, "s3://") }

// objects are the objects of a bucket whose names begin with a prefix.
type objects struct {
	client         *http.Client
	now            func() time.Time
	signer         *v4.Signer
	key            aws.Credentials
	base           *url.URL // the address of the bucket
	prefix, region string
}

// newObjects returns the objects of a bucket. It sends no request.
func newObjects(s S3, now func() time.Time) (*objects, error) {
	bucket, prefix, err := ParseS3(s.URL)
	if err != nil {
		return nil, err
	}
	region := cmp.Or(s.Region, "us-east-1")
	base, err := url.Parse(cmp.Or(s.Endpoint, "https://s3."+region+".amazonaws.com"))
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = bucketWait
	if s.Permitted != nil { // a proxy would resolve the name, so the address could not be checked
		transport.Proxy, transport.DialContext = nil, (&net.Dialer{Timeout: bucketWait, Control: s.Permitted}).DialContext
	}
	return &objects{
		client: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}},
		now:    now,
		signer: v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }),
		key:    aws.Credentials{AccessKeyID: s.Key, SecretAccessKey: s.Secret.Reveal()},
		base:   base.JoinPath(bucket), prefix: prefix, region: region,
	}, nil
}

// upload is the body of a request and what describes it. A nil upload is none.
type upload struct {
	body        io.Reader
	size        int64
	sum         [32]byte
	contentType string
	entry       string // metadata
}

// send sends a request. name is "" for the bucket itself. The caller must close the body of the response.
func (o *objects) send(ctx context.Context, method, name string, query url.Values, up *upload) (*http.Response, error) {
	if up == nil {
		up = &upload{sum: sha256.Sum256(nil)}
	}
	to := *o.base
	if name != "" {
		to = *o.base.JoinPath(o.prefix + name)
	}
	to.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(ctx, method, to.String(), up.body)
	if err != nil {
		return nil, err
	}
	sum := hex.EncodeToString(up.sum[:])
	r.Header.Set("X-Amz-Content-Sha256", sum)
	if r.ContentLength = up.size; up.entry != "" {
		r.Header.Set(entryHeader, up.entry)
		r.Header.Set("Content-Type", cmp.Or(up.contentType, "application/octet-stream"))
	}
	if err := o.signer.SignHTTP(ctx, o.key, r, sum, "s3", o.region, o.now()); err != nil {
		return nil, err
	}
	res, err := o.client.Do(r)
	if errors.Is(err, context.Canceled) {
		return nil, err
	}
	if err != nil {
		return nil, &db.Fault{Reason: bucketReason, Err: err}
	}
	if res.StatusCode < 300 {
		return res, nil
	}
	defer res.Body.Close()
	var refusal struct{ Code, Message string }
	_ = xml.NewDecoder(io.LimitReader(res.Body, 64<<10)).Decode(&refusal) // the status says enough
	if res.StatusCode == http.StatusNotFound && refusal.Code != "NoSuchBucket" {
		return nil, understudy.ErrNotFound
	}
	err = fmt.Errorf("%s: %s %s", res.Status, refusal.Code, understudy.Clip(refusal.Message))
	if refusal.Code == "NotImplemented" {
		err = errors.Join(err, errors.ErrUnsupported)
	}
	return nil, &db.Fault{Reason: bucketReason, Err: err}
}

// request sends a request whose response has no body. After an error, the object may or may not exist, but never a part of it.
func (o *objects) request(ctx context.Context, method, name string, query url.Values, up *upload) error {
	if up == nil {
		wait, cancel := context.WithTimeout(ctx, bucketWait)
		defer cancel()
		ctx = wait
	}
	res, err := o.send(ctx, method, name, query, up)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// object is an object, or one of its versions, in a listing.
type object struct {
	name     string
	version  string
	size     int64
	modified time.Time
}

// listing is a page of a list of objects or versions.
type listing struct {
	IsTruncated           bool
	NextContinuationToken string
	NextKeyMarker         string
	NextVersionIDMarker   string `xml:"NextVersionIdMarker"`
	Contents              []listed
	Version               []listed
	DeleteMarker          []listed
}

type listed struct {
	Key          string
	VersionID    string `xml:"VersionId"`
	Size         int64
	LastModified time.Time
}

// list returns the objects whose names begin with a prefix, in the order of their names.
func (o *objects) list(ctx context.Context, prefix string) (all []object, err error) {
	return o.listAll(ctx, url.Values{"list-type": {"2"}, "prefix": {o.prefix + prefix}})
}

// listAll returns the objects or versions that a query lists.
func (o *objects) listAll(ctx context.Context, query url.Values) (all []object, err error) {
	for {
		var page listing
		res, err := o.send(ctx, http.MethodGet, "", query, nil)
		if err != nil {
			return nil, err
		}
		err = xml.NewDecoder(res.Body).Decode(&page)
		if err = errors.Join(err, res.Body.Close()); err != nil {
			return nil, &db.Fault{Reason: bucketReason, Err: err}
		}
		for _, some := range [][]listed{page.Contents, page.Version, page.DeleteMarker} {
			for _, one := range some {
				all = append(all, object{strings.TrimPrefix(one.Key, o.prefix), one.VersionID, one.Size, one.LastModified})
			}
		}
		if !page.IsTruncated {
			return all, nil
		}
		if query.Has("versions") {
			query.Set("key-marker", page.NextKeyMarker)
			query.Set("version-id-marker", page.NextVersionIDMarker)
		} else {
			query.Set("continuation-token", page.NextContinuationToken)
		}
	}
}

// delete deletes the objects whose names begin with a prefix, with all their former versions and deletion markers. It returns whether
// there were any.
func (o *objects) delete(ctx context.Context, prefix string) (found bool, err error) {
	all, err := o.listAll(ctx, url.Values{"versions": {""}, "prefix": {o.prefix + prefix}})
	if errors.Is(err, errors.ErrUnsupported) { // the store has no versions
		all, err = o.list(ctx, prefix)
	}
	for _, one := range all {
		query := url.Values{}
		if one.version != "" {
			query.Set("versionId", one.version)
		}
		if derr := o.request(ctx, http.MethodDelete, one.name, query, nil); !errors.Is(derr, understudy.ErrNotFound) {
			err = errors.Join(err, derr)
		}
	}
	return len(all) > 0, err
}

// fetch copies a content into a temporary file that has no name any more. It returns ErrDamaged if the hash differs.
func (o *objects) fetch(ctx context.Context, name, folder string) (c request.Content, _ *os.File, err error) {
	ctx, cancel := context.WithTimeout(ctx, bucketTime)
	defer cancel()
	out, err := o.send(ctx, http.MethodGet, name, nil, nil)
	if err != nil {
		return c, nil, err
	}
	defer out.Body.Close()
	data, err := base64.RawURLEncoding.DecodeString(out.Header.Get(entryHeader))
	if err == nil {
		c, err = decodeIndex(data)
	}
	if err != nil || out.ContentLength != c.Size {
		return c, nil, errors.Join(understudy.ErrDamaged, err)
	}
	_, at, _ := parseName(name)
	c.At = time.Unix(0, at).UTC()
	path, got, err := writeTemp(folder, c.Size, c, out.Body)
	if err != nil {
		return c, nil, fmt.Errorf("%w: %w", understudy.ErrUnavailable, err)
	}
	in, err := os.Open(path)
	if err = errors.Join(err, os.Remove(path)); err == nil && got.Sum != c.Sum {
		err = understudy.ErrDamaged
	}
	if err != nil {
		_ = in.Close() // it was only read
	}
	return c, in, err
}
