import torch
import torch.cuda.amp as amp
import torch.utils.data as data

from detector import Detector, Boxes


def run_epoch(model, batches, optimizer, scaler, history):
    for images, boxes in batches:
        images = images.cuda(non_blocking=True)
        boxes = boxes.cuda(non_blocking=True)
        with amp.autocast():
            loss = model(images, boxes)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        history.append(float(loss))  # label: sync-each-step


if __name__ == "__main__":
    dataset = Boxes("coco")
    batches = data.DataLoader(dataset, 16, True, num_workers=12, pin_memory=True, drop_last=True)
    model = Detector().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    scaler, history = amp.GradScaler(), []
    for _ in range(12):
        run_epoch(model, batches, optimizer, scaler, history)
