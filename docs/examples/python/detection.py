# SPDX-License-Identifier: Apache-2.0
"""Detection: images of different sizes, and boxes of a type of their own that stays one.

With torchvision from 0.16 on the type is torchvision.tv_tensors.BoundingBoxes; nothing changes.
"""

import torch
from torch.utils.data import DataLoader, Dataset

import ebb


class BoundingBoxes(torch.Tensor):
    """A tensor that knows its format and its canvas."""

    @classmethod
    def make(cls, data, *, format, canvas_size):
        boxes = data.as_subclass(cls)
        boxes.format, boxes.canvas_size = format, canvas_size
        return boxes


class Scenes(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        random = torch.Generator().manual_seed(index)
        height, count = 64 + index % 32, index % 7
        boxes = BoundingBoxes.make(torch.rand((count, 4), generator=random), format="XYXY",
                                   canvas_size=(height, 96))
        return torch.rand((3, height, 96), generator=random), {
            "boxes": boxes, "labels": torch.arange(count), "image_id": torch.tensor([index])}


def pad_images(samples):
    """Images at one size and a mask, made in the region; targets as they are."""
    images = [image for image, _ in samples]
    height = max(image.shape[1] for image in images)
    batch = ebb.zeros((len(images), 3, height, 96), torch.float32)
    mask = ebb.zeros((len(images), height, 96), torch.bool)
    for i, image in enumerate(images):
        batch[i, :, :image.shape[1]] = image
        mask[i, image.shape[1]:] = True
    return batch, mask, [target for _, target in samples]


def main():
    pool = ebb.Pool("shared")
    loader = DataLoader(Scenes(), batch_size=8, num_workers=2,
                        collate_fn=ebb.Collate(pool, pad_images))
    seen = 0
    for images, mask, targets in loader:
        for target, image in zip(targets, images):
            boxes, (source, wanted) = target["boxes"], Scenes()[seen]
            assert type(boxes) is BoundingBoxes and boxes.format == "XYXY"
            assert boxes.canvas_size == (source.shape[1], 96)
            assert torch.equal(boxes, wanted["boxes"])
            assert torch.equal(image[:, :source.shape[1]], source)
            seen += 1
    assert pool.stats["fallbacks"] == 0 and seen == 64
    print(f"{seen} scenes, {pool.stats['received']} messages")


if __name__ == "__main__":
    main()
