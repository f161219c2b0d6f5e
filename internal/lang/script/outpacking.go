package script

import (
	"thalweg/internal/base/address"
	"thalweg/internal/lang/filespec"
)

// The ways to compress an output file as a whole, and the codecs of Parquet.
var (
	compressions  = []string{compressionNone, string(filespec.Gzip), string(filespec.Zstd)}
	parquetCodecs = []string{longCodec, "snappy", shortCodec, "uncompressed"}
)

const (
	compressionNone = "none"
	longCodec       = "gzip" // of columns in long form, as in Capillaries
	shortCodec      = "zstd"

	levelMax     = 22 // zstd's
	gzipLevelMax = 9
)

// packing reads how a file is compressed: by the keys of its format, else by its name.
func (l *loader) packing(o, format *object, w *FileWriter) {
	named, _ := address.Compression(w.URL)
	how := format.choice("compression", compressionNone)
	switch {
	case !format.has("compression") && named != "":
		how = named
	case named != "" && how != named:
		l.ErrorAt(format.get("compression"), format.keyPath("compression"),
			"the file's name says %s, but compression is %s", named, how).Hint =
			"leave compression out, or give the file another name"
	}
	if how != compressionNone {
		w.Packing.Compression = filespec.Compression(how)
	}
	if format.get("level") == nil {
		return
	}
	most := levelMax
	switch w.Packing.Compression {
	case filespec.Plain:
		l.ErrorAt(format.get("level"), format.keyPath("level"), "the file is not compressed").Hint =
			"give it a compression, or a name that ends in .gz or .zst"
		return
	case filespec.Gzip:
		most = gzipLevelMax
	}
	w.Packing.Level = format.integerWithin("level", 0, 1, most)
}

// codec reads how the pages of a Parquet file are compressed.
func (l *loader) codec(parquet *object, w *FileWriter) {
	w.Codec = parquet.choice("codec", longCodec)
	if v := parquet.get("level"); v != nil && w.Codec != shortCodec {
		l.ErrorAt(v, parquet.keyPath("level"), "codec %s has no levels", w.Codec).Hint = "codec zstd has"
		return
	}
	w.Packing.Level = parquet.integer("level", 0)
}
