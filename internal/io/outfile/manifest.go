package outfile

import (
	"encoding/json"
	"fmt"

	"thalweg/internal/lang/script"
)

// ManifestFormat is the version of a manifest's form.
const ManifestFormat = 1

// Manifest says what the files of one node of one run are. It appears when all of
// them are there.
type Manifest struct {
	Format      int    `json:"manifest"` // ManifestFormat
	Thalweg     string `json:"thalweg"`  // version of the program that began the run
	Workspace   string `json:"workspace"`
	Run         int64  `json:"run"`
	Node        string `json:"node"`
	Fingerprint string `json:"script_fingerprint"`

	Form        string `json:"format"` // csv, parquet …
	Compression string `json:"compression,omitempty"`
	// columns that are in the names of directories, and not in the files
	PartitionBy []string `json:"partition_by,omitempty"`

	Columns []ManifestColumn `json:"columns"`
	Rows    int64            `json:"rows"`
	Bytes   int64            `json:"bytes"`
	Files   []ManifestFile   `json:"files"`
}

// ManifestColumn is a column of the files, as their readers see it.
type ManifestColumn struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Nullable bool   `json:"nullable"`
}

// ManifestFile is one file.
type ManifestFile struct {
	Name   string `json:"name"` // seen from the directory of the manifest
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Describe says what w's files have in common.
func (m *Manifest) Describe(w *script.FileWriter) {
	m.Format, m.Form, m.Compression = ManifestFormat, string(w.Form), string(w.Packing.Compression)
	if w.Parquet {
		m.Compression = w.Codec
	}
	m.Columns, m.Files = []ManifestColumn{}, []ManifestFile{}
	for _, c := range w.Columns {
		m.Columns = append(m.Columns, ManifestColumn{Name: w.Shown(c), Type: c.Type.String(), Nullable: c.Nullable})
	}
	for _, c := range w.PartitionBy {
		m.PartitionBy = append(m.PartitionBy, w.Shown(c))
	}
}

// Add adds a file.
func (m *Manifest) Add(f ManifestFile) {
	m.Files = append(m.Files, f)
	m.Rows += f.Rows
	m.Bytes += f.Bytes
}

// Encode writes a manifest for people and programs.
func (m *Manifest) Encode() ([]byte, error) {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write a manifest: %w", err)
	}
	return append(text, '\n'), nil
}
