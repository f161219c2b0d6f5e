variable "flavor" {
  description = "single: one machine, no service. team: workers, parts in S3, three nodes of Cassandra. aws.arm64.c7g.N: a published shape, of nodes of N cores."
  type        = string
  default     = "single"
  validation {
    condition     = contains(["single", "team", "aws.arm64.c7g.8", "aws.arm64.c7g.16", "aws.arm64.c7g.32", "aws.arm64.c7g.64"], var.flavor)
    error_message = "single, team or aws.arm64.c7g.N with N = 8, 16, 32, 64."
  }
}

variable "nodes" {
  description = "Of aws.arm64.c7g.N: nodes of Cassandra, and as many workers."
  type        = number
  default     = 4
  validation {
    condition     = contains([4, 8, 16, 32], var.nodes)
    error_message = "The published shapes have 4, 8, 16 or 32 nodes."
  }
}

variable "workers" {
  description = "Of team: how many workers."
  type        = number
  default     = 2
  validation {
    condition     = var.workers >= 1 && var.workers <= 32
    error_message = "1 to 32 workers."
  }
}

variable "name" {
  description = "Begins the names of all that is made."
  type        = string
  default     = "thalweg"
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,24}$", var.name))
    error_message = "Small letters, digits and hyphens."
  }
}

variable "region" {
  type    = string
  default = "us-east-1"
  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]$", var.region))
    error_message = "A region, such as us-east-1. Prices are those of us-east-1."
  }
}

variable "zone" {
  description = "Letter of the zone. All machines are in one: nothing crosses zones, which costs."
  type        = string
  default     = "a"
  validation {
    condition     = can(regex("^[a-f]$", var.zone))
    error_message = "One letter."
  }
}

variable "bucket" {
  description = "A bucket that is there: packages below install/, inputs and outputs below data/, parts below parts/."
  type        = string
  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.bucket))
    error_message = "The name of a bucket."
  }
}

variable "package" {
  description = "Debian package of Thalweg for arm64, below install/ of the bucket."
  type        = object({ file = string, sha256 = string })
  validation {
    condition     = can(regex("^thalweg_[0-9A-Za-z.~+-]+_arm64\\.deb$", var.package.file)) && can(regex("^[0-9a-f]{64}$", var.package.sha256))
    error_message = "file = thalweg_VERSION_arm64.deb, sha256 = its 64 hexadecimal digits."
  }
}

variable "cassandra" {
  description = "Cassandra's archive, below install/ of the bucket; not of single."
  type        = object({ file = string, sha256 = string })
  default     = null
  validation {
    condition     = var.flavor == "single" || var.cassandra != null
    error_message = "This flavor needs Cassandra's archive."
  }
  validation {
    condition     = var.cassandra == null || (can(regex("^apache-cassandra-5[0-9.]+-bin\\.tar\\.gz$", var.cassandra.file)) && can(regex("^[0-9a-f]{64}$", var.cassandra.sha256)))
    error_message = "file = apache-cassandra-5.N.N-bin.tar.gz, sha256 = its 64 hexadecimal digits."
  }
}

variable "password_parameter" {
  description = "SecureString of the Parameter Store with the password of Cassandra's user; not of single. It is never read here."
  type        = string
  default     = ""
  validation {
    condition     = var.flavor == "single" || can(regex("^/[A-Za-z0-9_./-]+$", var.password_parameter))
    error_message = "This flavor needs the name of a parameter, such as /thalweg/cassandra."
  }
}

variable "admin_cidrs" {
  description = "Addresses (IPv4) from which SSH to the hub is let in; none: from nowhere."
  type        = list(string)
  default     = []
  validation {
    condition     = alltrue([for cidr in var.admin_cidrs : can(cidrnetmask(cidr)) && try(tonumber(split("/", cidr)[1]) >= 16, false)])
    error_message = "Blocks of IPv4 of at most 65,536 addresses: the world is not let in."
  }
}

variable "ssh_key_name" {
  description = "A key pair of EC2."
  type        = string
}

variable "data_gb" {
  description = "Volume for data of the single machine, and of each Cassandra node of team."
  type        = number
  default     = 200
}
