package clusterconfig

import (
	"slices"

	"thalweg/internal/base/document"
	"thalweg/internal/base/settings"
)

// everything has each section once, so that the loader asks for all its keys.
const everything = `version: 1
state: {cassandra: {hosts: a, tls: {}}, directory: x}
parts: {cassandra: {}, s3: {url: s3://b/x}, directory: x}
queue: {rabbitmq: {url: "amqp://h/", tls: {}}}
worker: {}
cost: {}
`

// KeysOf are the keys that the loader knows below a path.
func KeysOf(path string) []string {
	r := &reader{settings.New("cluster.yaml", "", Options{}), &Config{}}
	r.Ask()
	root, _ := document.Read(document.NewSource("cluster.yaml", everything))
	r.root(root)
	return slices.Sorted(slices.Values(r.Asked()[path]))
}
