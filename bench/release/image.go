// This file writes an image for containers: an OCI layout for each Linux, in one tar file.

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// imageUser is the number of the user and the group in the image.
const imageUser = 65532

// The types of the documents in an image.
const (
	layerType    = "application/vnd.oci.image.layer.v1.tar+gzip"
	configType   = "application/vnd.oci.image.config.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	indexType    = "application/vnd.oci.image.index.v1+json"
)

// descriptor names a document by its hash.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *imagePlatform    `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type imagePlatform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// imageConfig says how a container of the image is run.
type imageConfig struct {
	imagePlatform
	Created time.Time `json:"created"`
	Config  struct {
		User       string
		Env        []string
		Entrypoint []string
		Cmd        []string
		Volumes    map[string]struct{}
		WorkingDir string
		Labels     map[string]string
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// manifest lists the documents of a platform, or the manifests of all platforms.
type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        *descriptor  `json:"config,omitempty"`
	Layers        []descriptor `json:"layers,omitempty"`
	Manifests     []descriptor `json:"manifests,omitempty"`
}

// layout collects the documents of an image.
type layout struct{ files tree }

// add adds a document.
func (l *layout) add(mediaType string, data []byte) descriptor {
	sum := fmt.Sprintf("%x", sha256.Sum256(data))
	l.files = append(l.files, file{name: "blobs/sha256/" + sum, data: data})
	return descriptor{MediaType: mediaType, Digest: "sha256:" + sum, Size: len(data)}
}

// addJSON adds a document in JSON.
func (l *layout) addJSON(mediaType string, v any) descriptor {
	data, err := json.Marshal(v)
	must(err)
	return l.add(mediaType, data)
}

// image returns an image from scratch: the program, the certificates of authorities, a user, and a volume for the data.
func (r *release) image(programs map[platform][]byte, chosen []platform, licences []byte) file {
	var l layout
	all := manifest{SchemaVersion: 2, MediaType: indexType}
	for _, p := range chosen {
		if p.os != "linux" {
			continue
		}
		layer := imageFiles(programs[p], licences).tarred(r.date)
		config := imageConfig{imagePlatform: imagePlatform{p.arch, p.os}, Created: r.date}
		c := &config.Config
		c.User, c.Env, c.WorkingDir = fmt.Sprintf("%d:%[1]d", imageUser), []string{"PATH=/usr/bin"}, "/data"
		c.Entrypoint = []string{"/usr/bin/understudy"}
		c.Cmd = []string{"serve", "--config", "/etc/understudy/understudy.yml", "--data", "/data"}
		c.Volumes = map[string]struct{}{"/data": {}}
		c.Labels = map[string]string{"org.opencontainers.image.title": "understudy", "org.opencontainers.image.version": r.version,
			"org.opencontainers.image.revision": r.commit}
		config.RootFS.Type, config.RootFS.DiffIDs = "layers", []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}
		described := l.addJSON(configType, config)
		one := l.addJSON(manifestType, manifest{SchemaVersion: 2, MediaType: manifestType, Config: &described,
			Layers: []descriptor{l.add(layerType, gzipped(layer))}})
		one.Platform = &config.imagePlatform
		all.Manifests = append(all.Manifests, one)
	}
	whole := l.addJSON(indexType, all)
	whole.Annotations = map[string]string{"org.opencontainers.image.ref.name": r.version, "io.containerd.image.name": "localhost/understudy:" + r.version}
	index, err := json.Marshal(manifest{SchemaVersion: 2, MediaType: indexType, Manifests: []descriptor{whole}})
	must(err)
	l.files = append(l.files, file{name: "index.json", data: index}, file{name: "oci-layout", data: []byte(`{"imageLayoutVersion":"1.0.0"}`)})
	return file{name: "understudy-" + r.version + ".oci.tar", data: l.files.withFolders().tarred(r.date)}
}

// imageFiles returns the files of an image.
func imageFiles(program, licences []byte) tree {
	users := fmt.Sprintf("understudy:x:%d:%[1]d:understudy:/data:/sbin/nologin\n", imageUser)
	return tree{
		{name: "usr/bin/understudy", data: program, run: true},
		{name: "usr/share/doc/understudy/" + licencesName, data: licences},
		{name: "etc/passwd", data: []byte("root:x:0:0:root:/:/sbin/nologin\n" + users)},
		{name: "etc/group", data: []byte(fmt.Sprintf("root:x:0:\nunderstudy:x:%d:\n", imageUser))},
		{name: "etc/ssl/certs/ca-certificates.crt", data: readAuthorities()},
		{name: "etc/understudy/"}, {name: "data/", owner: imageUser}, {name: "tmp/", owner: imageUser},
	}.withFolders()
}

// readAuthorities returns the certificates of the authorities that Mozilla trusts without a condition.
func readAuthorities() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			must(pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return []byte(strings.TrimSpace(b.String()) + "\n")
}
