package serveconfig

import (
	"bytes"
	"encoding/json"
)

// SchemaID is the path, relative to the repository, of the JSON Schema that this binary prints.
const SchemaID = "schemas/serve.schema.json"

type object = map[string]any

// JSONSchema is the JSON Schema (draft 2020-12) of server configurations. What loads without a diagnostic is valid by
// it. It checks keys and kinds of values; the rest is checked by loading.
func JSONSchema() ([]byte, error) {
	root := section("A server of Thalweg.", object{
		"version":    object{"enum": []any{1, "1"}, "description": "The version of this file's keys."},
		"listen":     text("HOST:PORT. Beyond this machine it needs tls or proxies."),
		"hosts":      texts("Names for which the server answers."),
		"tls":        section("", object{"certificate": text("File in PEM."), "key": text("File in PEM.")}, "certificate", "key"),
		"proxies":    texts("Addresses of machines in front that speak TLS to clients."),
		"oidc":       oidcSchema(),
		"limits":     limitsSchema(),
		"workspaces": object{"type": "object", "propertyNames": object{"pattern": workspaceName.String()}, "additionalProperties": workspaceSchema()},
	}, "version")
	root["$schema"], root["$id"], root["title"] = "https://json-schema.org/draft/2020-12/schema", SchemaID,
		"Thalweg server"
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(root)
	return b.Bytes(), err
}

// section is a map with these keys and no others.
func section(description string, properties object, required ...string) object {
	out := object{"type": "object", "properties": properties, "additionalProperties": false}
	if description != "" {
		out["description"] = description
	}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

func text(description string) object {
	return object{"type": []any{"string", "number", "boolean"}, "description": description}
}

func texts(description string) object {
	one := object{"type": []any{"string", "number", "boolean"}}
	return object{"description": description, "anyOf": []any{one, object{"type": "array", "maxItems": listMax, "items": one}}}
}

// toggle is a truth value, or the text of one from the environment.
func toggle(description string) object {
	return object{"type": []any{"boolean", "string"}, "description": description}
}

func limitsSchema() object {
	count := func(most int, description string) object {
		return object{"description": description, "anyOf": []any{
			object{"type": "integer", "minimum": 1, "maximum": most}, object{"type": "string"}}}
	}
	return section("What clients may ask for.", object{
		"user_requests_per_second":    count(requestsMost, "Of each user."),
		"user_requests_burst":         count(requestsMost, "Of each user at once."),
		"address_requests_per_second": count(requestsMost, "Of each address."),
		"address_requests_burst":      count(requestsMost, "Of each address at once."),
		"user_streams":                count(streamsMost, "Streams of each user that are open."),
		"streams":                     count(streamsMost, "Streams of all."),
	})
}

func oidcSchema() object {
	grant := section("", object{"workspace": text("Name, or * for all."), "role": text("viewer, reader, operator, approver, author or admin."),
		"gate_roles": texts("Roles in which gates can be decided about.")})
	return section("Provider of identities.", object{
		"issuer": text("Its address, as it writes it."), "client_id": text("Of this server."),
		"client_secret": text(`"{env.NAME}"; none: a public client.`), "scopes": texts("Beside openid, profile and email."),
		"groups_claim": text("Claim of the ID token that has the groups; default: " + groupsClaimDefault + "."),
		"groups": object{"type": "object", "maxProperties": listMax, "description": "What each group gives.",
			"additionalProperties": object{"anyOf": []any{grant, object{"type": "array", "items": grant}}}},
	}, "issuer", "client_id", "groups")
}

func workspaceSchema() object {
	return section("", object{
		"scripts":    texts("Directories whose scripts may be started."),
		"parameters": toggle("Whoever starts a script may give it parameters, which can name other files."),
		"places": section("What runs may open; none: whatever the workers can.", object{
			"read":        texts("Directories, files, and beginnings of addresses."),
			"write":       texts("The same; what may be written may be read."),
			"hosts":       texts("HOST or HOST:PORT whose files may be read, and that hooks may call."),
			"databases":   texts("Beginnings of addresses."),
			"environment": texts("Variables that scripts and hooks may see."),
			"commands":    toggle("Hooks of scripts may run commands."),
		}),
	})
}
