package clusterconfig

import (
	"bytes"
	"encoding/json"

	"thalweg/internal/run/concurrency"
)

// SchemaID is the path, relative to the repository, of the JSON Schema that this binary prints.
const SchemaID = "schemas/cluster.schema.json"

type object = map[string]any

// reference is a text that has a value of the environment in it.
const reference = `\{[ \t]*env\.[A-Za-z_][A-Za-z0-9_]*[ \t]*\}`

// JSONSchema is the JSON Schema (draft 2020-12) of cluster configurations. What
// loads without a diagnostic is valid by it. It checks keys, kinds of values and the forms of
// sizes and durations; the rest is checked by loading.
func JSONSchema() ([]byte, error) {
	root := section("A cluster of Thalweg.", object{
		"version": object{"enum": []any{1, "1"}, "description": "The version of this file's keys."},
		"state":   stateSchema(),
		"parts":   partsSchema(),
		"queue": choice("How workers tell each other of batches at once; without it they look at the state "+
			"every so often.", object{
			"rabbitmq": brokerSchema()}),
		"worker": workerSchema(),
		"cost":   costSchema(),
	}, "version", "state")
	root["$schema"], root["$id"], root["title"] = "https://json-schema.org/draft/2020-12/schema", SchemaID,
		"Thalweg cluster"
	root["$defs"] = object{
		"text": object{"type": []any{"string", "number", "boolean"}},
		"tls":  tlsSchema(),
		"hosts": object{"oneOf": []any{textAs("HOST or HOST:PORT, several with commas."),
			object{"type": "array", "minItems": 1,
				"items": textAs("HOST or HOST:PORT.")}}},
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(root)
	return b.Bytes(), err
}

// section is a map with these keys and no others.
func section(description string, properties object, required ...string) object {
	out := object{"type": "object", "description": description, "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// choice is a section that has one of its keys.
func choice(description string, properties object) object {
	out := section(description, properties)
	out["minProperties"], out["maxProperties"] = 1, 1
	return out
}

func textAs(description string) object {
	return object{"$ref": "#/$defs/text", "description": description}
}

// form is a text of some form, or one from the environment.
func form(pattern, description string) object {
	return object{"type": "string", "pattern": pattern + "|" + reference, "description": description}
}

func count(least, most int, description string) object {
	return object{"description": description,
		"anyOf": []any{object{"type": "integer", "minimum": least, "maximum": most},
			object{"type": "string", "pattern": "^[0-9]+$|" + reference}}}
}

const (
	sizePattern     = `^[0-9]+(\.[0-9]+)?[ ]?[kKmMgGtT]i?[bB]?$`
	durationPattern = `^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*$|^0$`
)

func stateSchema() object {
	return choice("Where runs are kept.", object{
		"directory": textAs("State directory, seen from this file: all workers are on one machine."),
		"cassandra": section("A Cassandra cluster.", object{
			"hosts":      object{"$ref": "#/$defs/hosts"},
			"keyspace":   textAs("Default: " + KeyspaceDefault + "."),
			"datacenter": textAs("The datacenter that is near: requests wait for its nodes only."),
			"replication": object{"description": "Copies of each row: a number, or numbers by datacenter.",
				"oneOf": []any{count(1, replicasMax, ""), object{"type": "object", "minProperties": 1,
					"additionalProperties": count(1, replicasMax,
						"")}}},
			"username": textAs("User."), "password": textAs(`Password: "{env.NAME}".`),
			"password_file": textAs("File that has the password."),
			"tls":           object{"$ref": "#/$defs/tls"},
		}, "hosts"),
	})
}

func partsSchema() object {
	return choice("Where tables are kept; default: with the state.", object{
		"cassandra": section("The connection of the state.", object{}),
		"directory": textAs("Directory that all workers see."),
		"s3": section("A bucket of an S3-compatible service.", object{
			"url": object{"type": "string", "pattern": `^s3://[^/]+/.|` + reference,
				"description": "s3://BUCKET/PREFIX"},
			"endpoint": object{"type": "string", "pattern": `^https?://|` + reference,
				"description": "Address of the service; default: AWS."},
			"region":          textAs("Region; default: as the AWS tools find it."),
			"ca":              textAs("File of authorities trusted beside the system's."),
			"access_key":      textAs("Default: as the AWS tools find it."),
			"access_key_file": textAs("File that has the access key."),
			"secret_key":      textAs(`Secret of the access key: "{env.NAME}".`),
			"secret_key_file": textAs("File that has the secret key."),
		}, "url"),
	})
}

func brokerSchema() object {
	return section("RabbitMQ 3.8 or later.", object{
		"url": object{"type": "string", "pattern": `^amqps?://|` + reference,
			"description": "amqp://HOST:5672/VHOST or amqps://HOST:5671/VHOST, instead of hosts."},
		"hosts":    object{"$ref": "#/$defs/hosts"},
		"username": textAs("User."), "password": textAs(`Password: "{env.NAME}".`),
		"password_file": textAs("File that has the password."),
		"vhost":         textAs("Default: " + VHostDefault), "tls": object{"$ref": "#/$defs/tls"},
	})
}

func tlsSchema() object {
	files := section("How connections are secured.", object{
		"ca":   textAs("File of the authorities that sign the servers' certificates; default: the system's."),
		"cert": textAs("File of this side's certificate."), "key": textAs("File of its key."),
		"server_name": textAs("Name that the servers' certificates have; default: the host's."),
	})
	files["dependentRequired"] = object{"cert": []string{"key"}, "key": []string{"cert"}}
	return object{"oneOf": []any{object{"type": "boolean"}, files}}
}

func workerSchema() object {
	return section("How each worker works, unless its command line says otherwise.", object{
		"scratch": textAs("Directory for files that a machine has for itself."),
		"cache":   form(sizePattern, "Disk for copies of parts: 20GB."), "memory": form(sizePattern,
			"Memory for everything: 8GB; default: 60 % of the machine's."),
		"cores": count(1, coresMax, "Default: all."),
		"drain": object{"anyOf": []any{form(durationPattern, ""), object{"const": 0}},
			"description": "How long batches in flight may take when a worker is asked to end: 60s."},
		"metrics": textAs("HOST:PORT of the metrics' page."), "python": textAs("Interpreter; default: python3."),
		"machine":     textAs("Type of machine, for time sheets: c7g.large; default: as EC2's firmware says."),
		"concurrency": concurrencySchema(),
	})
}

func costSchema() object {
	things := func(description string, value object) object {
		return object{"type": "object", "minProperties": 1, "description": description, "additionalProperties": value,
			"propertyNames": object{"pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"}}
	}
	return section("What is paid beside the machines of workers, and prices.", object{
		"services": things("Machines of services, by type.", count(1, servicesMax, "How many.")),
		"others": things("Other things that are paid by the hour.", object{"type": []any{"number", "string"},
			"description": "US dollars an hour: 0.0225."}),
		"bring_up": object{"anyOf": []any{form(durationPattern, ""), object{"const": 0}},
			"description": "How long machines are paid for before they can work: 4m."},
		"prices": textAs("File of prices, which go before the published ones."),
	})
}

func concurrencySchema() object {
	number := func(description string) object { return count(1, concurrency.FixedMost, description) }
	classes := object{}
	for _, class := range concurrency.Classes() {
		knobs := object{}
		for _, knob := range concurrency.KnobsOf(class) {
			knobs[knob] = number("")
		}
		classes[class] = object{"anyOf": []any{number("Batches in flight."), section("", knobs)}}
	}
	return object{"description": "How much is done at once, by class of work; default: found by measuring.",
		"anyOf": []any{number("Batches in flight of each class."), section("", classes)}}
}
