"""Continuous queries in shards: which can, how tuples are dealt to them, how their answers come together.

Every shard runs the whole query over the tuples whose key hashes to it; relations are whole in every shard.
"""
