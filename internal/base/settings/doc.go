// Package settings reads configurations: YAML or JSON documents of sections with known keys, whose values may refer to
// the environment.
//
// It promises a diagnostic with its place for each key that is not known, is there twice, or has a value of another
// kind; secrets are made known before they can reach a message. It owns no keys: its users do.
package settings
