import random

import gymnasium as gym
import torch

from memory import Replay
from net import QNet

device = torch.device("cuda")
env = gym.make("LunarLander-v3")
policy, target = QNet().to(device), QNet().to(device)
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-4)
replay = Replay(100_000)

for episode in range(2000):
    state, _ = env.reset()
    done = False
    total = 0.0
    while not done:
        if random.random() < max(0.05, 1 - episode / 500):
            action = env.action_space.sample()
        else:
            with torch.no_grad():
                observed = torch.as_tensor(state, device=device)
                action = policy(observed).argmax().item()  # label: sync-each-step
        following, reward, ended, cut, _ = env.step(action)
        done = ended or cut
        total += reward
        replay.push(state, action, reward, following, done)
        state = following
        if len(replay) > 10_000:
            batch = replay.sample(128, device)
            wanted = batch.reward + 0.99 * target(batch.following).max(1).values * ~batch.done
            found = policy(batch.state).gather(1, batch.action).squeeze(1)
            loss = torch.nn.functional.smooth_l1_loss(found, wanted.detach())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(episode, total)
    if episode % 10 == 0:
        target.load_state_dict(policy.state_dict())
