import { mount } from "svelte";
import App from "./App.svelte";
import "./styles.css";

mount(App, { target: document.body });
