# Two roles: one that works, with one bucket, and one of Cassandra, which fetches its archive and nothing else.
data "aws_caller_identity" "here" {}

locals {
  bucket    = "arn:aws:s3:::${var.bucket}"
  parameter = "arn:aws:ssm:${var.region}:${data.aws_caller_identity.here.account_id}:parameter${var.password_parameter}"
  password = local.alone ? [] : [{
    Effect = "Allow", Action = ["ssm:GetParameter"], Resource = [local.parameter]
  }]
  package = [{
    Effect = "Allow", Action = ["s3:GetObject"], Resource = ["${local.bucket}/install/*"]
  }]
  policies = merge({
    work = concat(local.package, local.password, [
      {
        Effect   = "Allow"
        Action   = ["s3:ListBucket", "s3:ListBucketMultipartUploads"]
        Resource = [local.bucket]
      },
      {
        Effect   = "Allow"
        Action   = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"]
        Resource = ["${local.bucket}/data/*", "${local.bucket}/parts/*"]
      },
    ])
  }, local.alone ? {} : { cassandra = concat(local.package, local.password) })
}

resource "aws_iam_role" "machine" {
  for_each = local.policies
  name     = "${var.name}-${each.key}"
  assume_role_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Action = "sts:AssumeRole", Principal = { Service = "ec2.amazonaws.com" } }]
  })
}

resource "aws_iam_role_policy" "machine" {
  for_each = local.policies
  name     = "${var.name}-${each.key}"
  role     = aws_iam_role.machine[each.key].id
  policy   = jsonencode({ Version = "2012-10-17", Statement = each.value })
}

resource "aws_iam_instance_profile" "machine" {
  for_each = local.policies
  name     = "${var.name}-${each.key}"
  role     = aws_iam_role.machine[each.key].name
}
