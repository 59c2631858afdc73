// Record: the format of an entry in a file.

package wal

import (
	"encoding/binary"
	"hash/crc32"
)

// recordHeaderSize is the size of a record's header: the length of the data, a CRC32C of the rest of the
// record, and the number of the entry, all in little endian. The data follow. The checksum covers the number,
// so a complete record in a wrong place is not accepted.
const recordHeaderSize = 4 + 4 + 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendRecord(to []byte, number uint64, data []byte) []byte {
	at := len(to)
	to = binary.LittleEndian.AppendUint32(to, uint32(len(data)))
	to = append(to, 0, 0, 0, 0)
	to = binary.LittleEndian.AppendUint64(to, number)
	to = append(to, data...)
	binary.LittleEndian.PutUint32(to[at+4:], checksum(to[at:]))
	return to
}

// checksum returns the checksum of a record, which covers everything except the checksum itself.
func checksum(record []byte) uint32 {
	return crc32.Update(crc32.Checksum(record[:4], castagnoli), castagnoli, record[8:])
}

// recordSize returns the length of the record with this header, or 0 if no record begins here. limit is the
// maximum length of its data.
func recordSize(head []byte, limit int64) int64 {
	n := int64(binary.LittleEndian.Uint32(head))
	if n == 0 || n > limit {
		return 0
	}
	return recordHeaderSize + n
}

// isValid reports whether the bytes are the complete record of an entry.
func isValid(record []byte, number uint64) bool {
	return binary.LittleEndian.Uint32(record[4:]) == checksum(record) && binary.LittleEndian.Uint64(record[8:]) == number
}
