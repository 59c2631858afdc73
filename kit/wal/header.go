// Header: records which files belong to the log.

package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
)

// header describes the files of the log. It is stored in a file of two slots that are written alternately. If a crash
// interrupts a write, the other slot is still valid.
type header struct {
	generation uint64
	first      uint64 // the number of the first entry in the oldest file
	last       uint64 // the number of the first entry in the newest file
}

const (
	headerName  = "header"
	headerMagic = "understudy wal 1"
	slotSize    = 4096 // a page of the disk, so that writing one slot can't damage the other
	slotUsed    = len(headerMagic) + 3*8 + 4
)

func (h header) encode() []byte {
	slot := append(make([]byte, 0, slotUsed), headerMagic...)
	for _, v := range []uint64{h.generation, h.first, h.last} {
		slot = binary.LittleEndian.AppendUint64(slot, v)
	}
	return binary.LittleEndian.AppendUint32(slot, crc32.Checksum(slot, castagnoli))
}

func decodeHeader(slot []byte) (h header, ok bool) {
	if len(slot) < slotUsed || string(slot[:len(headerMagic)]) != headerMagic {
		return h, false
	}
	slot = slot[:slotUsed]
	if binary.LittleEndian.Uint32(slot[slotUsed-4:]) != crc32.Checksum(slot[:slotUsed-4], castagnoli) {
		return h, false
	}
	for i, v := range []*uint64{&h.generation, &h.first, &h.last} {
		*v = binary.LittleEndian.Uint64(slot[len(headerMagic)+8*i:])
	}
	return h, true
}

// readHeader returns the newest valid slot. ok is false if the folder has no log yet, or if a crash interrupted
// the first write of the header.
func readHeader(dir string) (newest header, ok bool, err error) {
	data, err := os.ReadFile(filepath.Join(dir, headerName))
	if errors.Is(err, os.ErrNotExist) {
		return newest, false, nil
	}
	if err != nil {
		return newest, false, err
	}
	for at := 0; at < len(data) && at < 2*slotSize; at += slotSize {
		if h, whole := decodeHeader(data[at:]); whole && h.generation >= newest.generation {
			newest, ok = h, true
		}
	}
	return newest, ok, nil
}

// writeHeader writes the next generation of the header and waits until it is durable.
func (l *Log) writeHeader(first, last uint64) error {
	h := header{generation: l.header.generation + 1, first: first, last: last}
	f, err := os.OpenFile(filepath.Join(l.dir, headerName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(h.encode(), int64(h.generation%2)*slotSize)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("wal: header: %w", err)
	}
	l.header = h
	return nil
}
