# One machine: IMDSv2, encrypted disks, a first start that installs what its role needs.
variable "machine" {
  description = "What all machines have in common."
  type        = object({ name = string, ami = string, zone = string, key_name = string, root_gb = number })
}

variable "role" {
  description = "single, hub, worker or cassandra."
  type        = string
}

variable "name" {
  type = string
}

variable "instance_type" {
  type = string
}

variable "subnet_id" {
  type = string
}

variable "security_group" {
  type = string
}

variable "profile" {
  type = string
}

variable "public" {
  description = "Whether it has an address of the outside."
  type        = bool
  default     = false
}

variable "address" {
  type    = string
  default = null
}

variable "data_gb" {
  description = "Volume for data; 0: none."
  type        = number
  default     = 0
}

variable "packages" {
  type    = list(string)
  default = []
}

variable "environment" {
  description = "Of deploy/node/boot."
  type        = map(string)
}

variable "files" {
  description = "More texts beside deploy/node/boot."
  type        = map(string)
  default     = {}
}

locals {
  node  = "${path.module}/../../../node"
  named = "${var.machine.name}-${var.name}"
  scripts = { for file in ["install", "boot", "password", "users"] : file => file("${local.node}/${file}")
  if file != "users" || var.role == "cassandra" }
  texts       = { for file in fileset(local.node, "*.{service,conf,yaml}") : file => file("${local.node}/${file}") }
  environment = merge(var.environment, { ROLE = var.role }, var.data_gb > 0 ? { VOLUME = aws_ebs_volume.data[0].id } : {})

  user_data = "#cloud-config\n${jsonencode({
    package_update = true
    packages       = concat(["awscli", "xfsprogs"], var.packages)
    write_files = concat(
      [for file, text in local.scripts : { path = "/opt/thalweg-node/${file}", permissions = "0755", content = text }],
      [for file, text in merge(local.texts, var.files) : { path = "/opt/thalweg-node/${file}", permissions = "0644", content = text }],
      [{ path = "/etc/thalweg/node.env", permissions = "0644", content = join("", [for key, value in local.environment : "${key}=${value}\n"]) }],
    )
    runcmd = [["/opt/thalweg-node/boot"]]
  })}"
}

resource "aws_instance" "this" {
  ami                         = var.machine.ami
  instance_type               = var.instance_type
  availability_zone           = var.machine.zone
  subnet_id                   = var.subnet_id
  private_ip                  = var.address
  associate_public_ip_address = var.public
  vpc_security_group_ids      = [var.security_group]
  iam_instance_profile        = var.profile
  key_name                    = var.machine.key_name
  user_data_base64            = base64gzip(local.user_data)

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
    instance_metadata_tags      = "disabled"
  }

  root_block_device {
    volume_type = "gp3"
    volume_size = var.machine.root_gb
    encrypted   = true
  }

  lifecycle {
    # A newer image or script is for new machines: this one may have data.
    ignore_changes = [ami, user_data_base64]
  }

  tags = { Name = local.named }
}

resource "aws_ebs_volume" "data" {
  count             = var.data_gb > 0 ? 1 : 0
  availability_zone = var.machine.zone
  type              = "gp3"
  size              = var.data_gb
  encrypted         = true
  # destroy keeps a copy.
  final_snapshot = true
  tags           = { Name = "${local.named}-data" }
}

resource "aws_volume_attachment" "data" {
  count                          = var.data_gb > 0 ? 1 : 0
  device_name                    = "/dev/sdf"
  volume_id                      = aws_ebs_volume.data[0].id
  instance_id                    = aws_instance.this.id
  stop_instance_before_detaching = true
}

output "private_ip" {
  value = aws_instance.this.private_ip
}

output "public_ip" {
  value = aws_instance.this.public_ip
}

# For checks of the plan, which see a module through its outputs only.
output "plan" {
  value = {
    metadata = aws_instance.this.metadata_options
    disks    = concat([for disk in aws_instance.this.root_block_device : disk.encrypted], [for volume in aws_ebs_volume.data : volume.encrypted])
    public   = aws_instance.this.associate_public_ip_address
    bytes    = length(base64gzip(local.user_data)) * 3 / 4
  }
}
