package kernels

// latentDispatches are the largest of latent attention: bailingmoe3 flash, whatever the model.
func latentDispatches(d device) []dispatched {
	const heads, rank, rot, nope, value = 32, 512, 64, 128, 128
	split, err := NewLatentSplit(d.limits, heads, rank+rot, rank)
	if err != nil {
		panic(err)
	}
	chunk, err := NewLatentChunk(d.limits, heads, rank+rot, rank)
	if err != nil {
		panic(err)
	}
	keyUp, valueUp := MatmulTile(d.limits, heads*rank, nope/32), MatmulTile(d.limits, heads*value, rank/32)
	key, up := map[string]uint32{"units": nope / 32, "head_rows": rank}, map[string]uint32{"units": rank / 32, "head_rows": value}
	return []dispatched{
		{"latent", map[string]uint32{"RANK": rank, "ROT": rot, "W": d.width}, nil, ""},
		{"attn_split", split.Params, nil, split.Choice},
		{"attn_merge", split.Merge, nil, ""},
		{"attn_chunk", chunk.Params, nil, chunk.Choice},
		{"attn_merge", map[string]uint32{"HD": rank, "KEYS": uint32(chunk.Run), "W": d.width}, nil, ""},
		{"matvec_heads", d.split, key, ""},
		{"matvec_heads", d.split, up, ""},
		{"matmul_heads", keyUp.Params, key, keyUp.Choice},
		{"matmul_heads", valueUp.Params, up, valueUp.Choice},
	}
}
